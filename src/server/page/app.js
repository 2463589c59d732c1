// The page: brings link, mirror, voice and view together. Every press of a person becomes a control message here, and every
// answer that is not a yes is shown.

import * as link from "./link.js";
import { Mirror } from "./mirror.js";
import * as State from "./state.js";
import * as tones from "./tones.js";
import * as view from "./view.js";
import { Voice } from "./voice.js";

const { $ } = view;
const HOLD_MS = 300; // on the microphone button itself: shorter is a press, longer is push to talk
const LEAVE_MS = 5000; // how long "leave" waits for its second press
const TRIES = ["What's in my notes?", "Enter plan mode.", "What can I say?"];

const state = State.fresh();
let mirror = null;
let connection = "connecting";
let drawing = 0;

const voice = new Voice({
  where: () => ({ token: link.token(), conversation: mirror.id }),
  on: { change: redraw, notice: (code, message) => { State.addNotice(state, code, message); redraw(); } },
});

function redraw() { drawing ||= requestAnimationFrame(drawNow); }

function drawNow() {
  drawing = 0;
  const online = connection === "open" && !state.ended;
  view.draw(state, { online, onDismiss: dismiss, onAnswer: answer });
  const word = voice.state(state.voice);
  view.drawMic({
    word, problem: voice.problem, muted: voice.muted, voiceOn: voice.wanted, canTalk: online,
    canStop: online && (voice.playing || ["speaking", "processing"].includes(state.voice)), tones: tones.wanted(voice.open),
  });
  $("send").disabled = !online;
}

// ---- what arrives

function heardFrame(frame) {
  const before = { plan: state.plan, question: state.question?.id };
  if (frame.type === "level") return;
  State.takeFrame(state, frame, Date.now());
  sound(frame, before);
  if (state.ended) {
    view.drawBanner("This conversation has ended. Load the page again to go on with the newest one.");
    setConnection("ended");
    voice.stop();
  }
  redraw();
}

function sound(frame, before) {
  if (!tones.wanted(voice.open)) return;
  if (frame.type === "plan_mode" && before.plan !== state.plan) (state.plan ? tones.planOn : tones.planOff)();
  if (frame.type === "tool_result" && state.trace.get(frame.payload?.call_id)?.outcome === "refused") tones.refused();
}

function setConnection(word) {
  connection = word;
  view.drawConnection(word, state.session || mirror?.id);
  redraw();
}

function connectionState(word, retryMs) {
  if (state.ended && word !== "open") return;
  setConnection(word);
  if (word === "open") view.drawBanner("");
  const wait = retryMs > 1500 ? ` Trying again in ${Math.round(retryMs / 1000)} seconds.` : " Trying again.";
  if (word === "dropped" && retryMs > 700) view.drawBanner(`The connection dropped. What you see may be old.${wait}`);
  if (word === "unreachable") view.drawBanner(`voxgate does not answer. Is it still running? What you see may be old.${wait}`);
}

function gone(why) {
  if (why === "key") {
    link.forget();
    voice.stop();
    return noWay("The key of this page is no longer valid.");
  }
  State.addNotice(state, "unknown_session", `Conversation ${mirror.id} does not exist (any more). This is the newest one.`);
  connect("last");
}

// ---- what is pressed

// Sends a control message and shows what came back if it was no yes.
async function tell(type, payload) {
  sayError("");
  const ack = await mirror.send(type, payload);
  if (!ack.ok) sayError(ack.message || `That was not accepted (${ack.code || "no reason given"}).`);
  return ack;
}

function sayError(text) {
  const node = $("say-error");
  node.textContent = State.clean(text, 400);
  node.hidden = !text;
}

async function sendChat(text) {
  const ack = await tell("chat", { text });
  return ack.ok;
}

function decide(decision, more = {}) {
  const plan = State.newest(state);
  const named = plan ? { version: plan.version, hash: plan.hash } : {};
  return tell("plan_decision", { ...named, decision, ...more });
}

function answer(question, yes) {
  if (question.kind === "tool") return tell("approval_decision", { request_id: question.request, decision: yes ? "approve" : "deny" });
  // Staying in plan mode is the strict side: saying it again closes the question.
  if (!yes) return tell("mode", { posture: "plan" });
  if (question.kind === "leave") return leave();
  const plan = state.plans.get(question.version);
  return tell("plan_decision", { version: question.version, ...(plan?.hash ? { hash: plan.hash } : {}), decision: "approve" });
}

function leave() { return State.newest(state) ? decide("leave") : tell("mode", { posture: "default" }); }

function dismiss(key) {
  state.notices = state.notices.filter((n) => n.key !== key);
  redraw();
}

function stopTalking() {
  const scope = voice.playing || state.voice === "speaking" ? "speech" : "turn";
  voice.flush();
  return tell("stop", { scope });
}

function pressMic() {
  if (!voice.wanted) return voice.start();
  return voice.mute(!voice.muted);
}

// Leaving without an approval asks for a second press of the same button.
let leaveArmed = 0;
function pressLeave() {
  const button = $("plan-leave");
  const calm = () => { clearTimeout(leaveArmed); leaveArmed = 0; button.textContent = "Leave plan mode"; button.classList.remove("armed"); };
  if (leaveArmed) { calm(); return leave(); }
  button.textContent = "Leave, nothing approved?";
  button.classList.add("armed");
  leaveArmed = setTimeout(calm, LEAVE_MS);
}

function wireButtons() {
  $("mode-button").onclick = () => tell("mode", { posture: "plan" });
  $("question-yes").onclick = () => answerShown(true);
  $("question-no").onclick = () => answerShown(false);
  $("plan-approve").onclick = () => decide("approve");
  $("plan-changes").onclick = () => view.openChanges($("plan-form").hidden);
  $("plan-cancel").onclick = () => { view.openChanges(false); $("plan-changes").focus(); };
  $("plan-dismiss").onclick = () => decide("dismiss");
  $("plan-back").onclick = () => decide("back_to_review");
  $("plan-present").onclick = () => sendChat("Present the plan.");
  $("plan-leave").onclick = pressLeave;
  $("plan-form").onsubmit = async (event) => {
    event.preventDefault();
    const ack = await decide("request_changes", { comments: $("plan-comments").value.trim() });
    if (ack.ok) { $("plan-comments").value = ""; view.openChanges(false); }
  };
  $("say").onsubmit = async (event) => {
    event.preventDefault();
    const text = $("text").value.trim();
    if (!text) return;
    $("text").value = "";
    if (!(await sendChat(text)) && !$("text").value) $("text").value = text;
  };
  $("mic-off").onclick = () => { voice.stop(); $("mic").focus(); };
  $("stop").onclick = stopTalking;
  $("tones").onclick = () => { tones.choose(tones.wanted(voice.open) ? "off" : "on"); redraw(); };
  $("tail").onclick = view.toEnd;
  $("tries").append(...TRIES.map((words) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn small";
    button.textContent = words;
    button.onclick = () => sendChat(words);
    return button;
  }));
}

function answerShown(yes) {
  const question = state.question ?? view.firstApproval(state);
  if (question) return answer(question, yes);
}

// ---- keyboard

const TYPING = "input, textarea, select, [contenteditable]";
const PRESSING = "button, summary, a, details";

// Space belongs to the element that has the focus if that is something one types into or presses; else it is push to talk.
function spaceIsFree(target) {
  if (target.closest(TYPING)) return false;
  return target.id === "mic" || !target.closest(PRESSING);
}

let heldSince = 0;
let micTimer = 0;

function keyDown(event) {
  if ($("app").hidden || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.code === "Space" && spaceIsFree(event.target)) {
    event.preventDefault();
    if (event.repeat || heldSince || connection !== "open") return;
    heldSince = performance.now();
    if (event.target.id === "mic") micTimer = setTimeout(() => { micTimer = 0; voice.hold(true); }, HOLD_MS);
    else voice.hold(true);
  } else if (event.key === "Escape" && !$("stop").hidden) {
    stopTalking();
  } else if (event.key === "/" && !event.target.closest(TYPING)) {
    $("text").focus();
    if ($("text").value) event.preventDefault();
  }
}

function keyUp(event) {
  if (event.code !== "Space" || !heldSince) return;
  event.preventDefault();
  release();
}

function release() {
  heldSince = 0;
  if (micTimer) {
    clearTimeout(micTimer);
    micTimer = 0;
    return pressMic();
  }
  voice.hold(false);
}

function wireKeys() {
  document.addEventListener("keydown", keyDown);
  document.addEventListener("keyup", keyUp);
  addEventListener("blur", () => { if (heldSince) { clearTimeout(micTimer); micTimer = 0; release(); } });
  $("mic").onclick = (event) => { if (event.detail > 0 || !heldSince) pressMic(); };
}

// ---- beginning

function noWay(why) {
  mirror?.close();
  $("app").hidden = true;
  $("door").hidden = false;
  $("door-title").textContent = why ? "This page needs a new link" : "This page needs a link";
  $("door-text").textContent = why || "Only somebody with access to the machine can open it.";
}

function connect(id) {
  mirror?.close();
  mirror = new Mirror({
    token: link.token(), id,
    on: {
      snapshot: (payload, session) => {
        State.takeSnapshot(state, { ...payload, session_id: session }, Date.now());
        if (!state.ended) view.drawBanner("");
        redraw();
      },
      frame: heardFrame, state: connectionState, gone,
    },
  });
  mirror.open();
}

async function begin() {
  const entered = await link.enter();
  if (!entered.ok) return noWay(entered.why);
  $("door").hidden = true;
  $("app").hidden = false;
  voice.stop();
  connect(link.fragment().conversation || "last");
}

wireButtons();
wireKeys();
addEventListener("hashchange", () => { if (link.fragment().code) begin(); });
setInterval(() => { view.drawCountdown(state.question, Date.now()); if (State.tidy(state, Date.now())) redraw(); }, 250);
setInterval(() => { if (voice.wanted) view.drawLevel(voice.muted && !voice.holding ? 0 : voice.level); }, 50);
begin();
