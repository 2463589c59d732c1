// The screen: draws the state, and nothing but the state. Text goes in as text, never as markup. Decides nothing; what a
// person presses is handed to `app.js`.

import { newest, waits } from "./state.js";

export const $ = (id) => document.getElementById(id);

function make(tag, name, ...children) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  for (const child of children) node.append(child); // strings become text nodes
  return node;
}

function put(node, text) { if (node.textContent !== text) node.textContent = text; }
function show(node, on) { if (node.hidden === on) node.hidden = !on; }

// Draws a part again only when what it shows has changed.
const drawn = new Map();
function changed(part, ...facts) {
  const now = JSON.stringify(facts);
  if (drawn.get(part) === now) return false;
  drawn.set(part, now);
  return true;
}

export function draw(state, extra) {
  drawMode(state, extra);
  drawQuestion(state, extra);
  drawPlan(state, extra);
  drawLines(state);
  drawTrace(state);
  drawTodo(state);
  drawNotices(state, extra);
  drawTitle(state);
}

function drawTitle(state) {
  const title = (state.question ? "● " : "") + (state.plan ? "PLAN · voxgate" : "voxgate");
  if (document.title !== title) document.title = title;
}

// ---- header

const CONNECTION = { connecting: "connecting", open: "connected", dropped: "reconnecting", unreachable: "not reachable", ended: "ended" };

export function drawConnection(word, session) {
  $("conn").dataset.state = word;
  put($("conn-text"), CONNECTION[word] ?? word);
  put($("convo"), session && session !== "last" ? session : "");
  $("convo").title = session ? `Conversation ${session}` : "Conversation";
}

export function drawBanner(text) {
  put($("banner"), text);
  show($("banner"), text !== "");
}

const MODE_NAMES = { bypass: "Bypass: nothing is asked", autonomous: "Autonomous: nothing is asked, calls are refused" };

function drawMode(state, { online }) {
  const mode = state.plan === true ? "plan" : state.plan === false ? "default" : "unknown";
  $("badge").dataset.mode = mode;
  document.documentElement.dataset.mode = mode;
  put($("badge-name"), mode === "plan" ? "PLAN MODE" : mode === "default" ? MODE_NAMES[state.modeName] ?? "Default" : "mode unknown");
  show($("badge-wide"), $("badge-name").textContent === "Default");
  const notes = [];
  if (state.restored) notes.push("restored after a restart");
  if (state.draining) notes.push(state.draining === 1 ? "1 call still running" : `${state.draining} calls still running`);
  put($("badge-note"), notes.join(" · "));
  show($("badge-note"), notes.length > 0);
  put($("mode-button"), "Enter plan mode");
  show($("mode-button"), mode !== "plan");
  $("mode-button").disabled = !online || mode === "unknown";
}

function drawNotices(state, { onDismiss }) {
  if (!changed("notices", state.notices)) return;
  const known = new Map([...$("notices").children].map((n) => [n.dataset.key, n]));
  const keys = new Set(state.notices.map((n) => String(n.key)));
  for (const [key, node] of known) if (!keys.has(key)) node.remove();
  for (const notice of state.notices) {
    if (known.has(String(notice.key))) continue;
    const close = make("button", "close", "×");
    close.type = "button";
    close.setAttribute("aria-label", "Dismiss this notice");
    close.onclick = () => onDismiss(notice.key);
    const item = make("li", "notice", make("span", "content", notice.text), close);
    item.dataset.key = String(notice.key);
    item.title = notice.code;
    $("notices").append(item);
  }
}

// ---- the question

const QUESTION_HEADS = { tool: "May this run?", approve: "Approve the plan?", leave: "Leave plan mode?" };

function buttonsOf(question) {
  if (question.kind === "approve") return [question.version ? `Approve plan ${question.version}` : "Approve", "Keep planning"];
  if (question.kind === "leave") return ["Leave plan mode", "Stay in plan mode"];
  return ["Allow", "Deny"];
}

function stateOf(question) {
  if (question.screenOnly) return "Only a screen can answer this; voxgate will not take it by voice.";
  if (question.place === "asked") return "Answer here, or aloud once it has been said.";
  if (question.place === "heard") return "You have heard it: answer aloud, or here.";
  return "The time to answer aloud is over. You can still answer here.";
}

function drawQuestion(state, { online, onAnswer }) {
  const question = state.question ?? firstApproval(state);
  show($("question"), question !== null);
  document.documentElement.toggleAttribute("data-question", question !== null);
  if (!question) return drawn.delete("question");
  const buttons = buttonsOf(question);
  for (const id of ["question-yes", "question-no"]) $(id).disabled = !online;
  const waiting = [...state.approvals.values()].filter((a) => a.request !== question.request);
  if (!changed("question", question, waiting, online, [...state.approvals.keys()])) return;
  put($("question-head"), QUESTION_HEADS[question.kind] ?? "voxgate asks");
  put($("question-who"), question.screenOnly || question.place === "screen_only" ? "on screen only" : "by voice or here");
  put($("question-text"), question.text);
  const call = state.approvals.get(question.request);
  put($("question-args"), call ? `${call.tool} ${call.args}` : "");
  show($("question-args"), Boolean(call));
  put($("question-state"), stateOf(question));
  $("question").dataset.place = question.screenOnly ? "screen_only" : question.place;
  put($("question-yes"), buttons[0]);
  put($("question-no"), buttons[1]);
  $("queue").replaceChildren(...waiting.map((a) => queued(a, online, onAnswer)));
  show($("queue"), waiting.length > 0);
}

// A call can wait without a question being open (the one that was asked has just been answered, or the page came late).
export function firstApproval(state) {
  const first = state.approvals.values().next().value;
  if (!first) return null;
  return { id: first.request, request: first.request, kind: "tool", text: first.reason || `Run ${first.tool}?`, place: "screen_only", screenOnly: first.screenOnly, until: null, version: 0 };
}

function queued(approval, online, onAnswer) {
  const answer = (label, approve) => {
    const button = make("button", "btn small", label);
    button.type = "button";
    button.disabled = !online;
    button.onclick = () => onAnswer({ kind: "tool", request: approval.request }, approve);
    button.setAttribute("aria-label", `${label}: ${approval.reason || approval.tool}`);
    return button;
  };
  return make("li", "", make("span", "content", approval.reason || approval.tool), answer("Allow", true), answer("Deny", false));
}

// Called a few times a second: only the bar and the seconds move.
export function drawCountdown(question, now) {
  const left = question?.until ? question.until - now : 0;
  show($("question-window"), left > 0 && question.place === "heard");
  if (left <= 0) return;
  $("question-bar").style.setProperty("width", `${Math.min(100, (left / 15000) * 100)}%`);
  put($("question-left"), `${Math.ceil(left / 1000)} s to answer aloud`);
}

// ---- the plan

const STATUS = {
  waiting: "waiting for you", approved: "approved", changes_requested: "changes requested", dismissed: "set aside",
  set_aside: "set aside with plan mode", superseded: "replaced by a newer one", completed: "carried out",
};

let foldedFor = "";

function drawPlan(state, { online }) {
  const plan = newest(state);
  const drafting = state.plan === true && state.draft.length > 0 && plan?.status !== "waiting";
  show($("plan"), plan !== null || state.plan === true);
  const buttons = ["approve", "changes", "dismiss", "back", "present", "leave"];
  for (const name of buttons) $(`plan-${name}`).disabled = !online;
  if (!changed("plan", plan, state.plan, state.draft, drafting, state.reason, state.plans.size)) return;
  const waiting = plan?.status === "waiting";
  $("plan").dataset.status = drafting ? "draft" : plan?.status ?? "none";
  const shown = drafting ? { steps: state.draft, title: "", questions: [], risks: [] } : plan;
  put($("plan-head"), drafting ? "Draft plan" : plan ? `Plan ${plan.version}` : "Plan");
  put($("plan-status"), drafting ? "not presented yet" : plan ? STATUS[plan.status] ?? plan.status : "none yet");
  put($("plan-hash"), drafting || !plan?.hash ? "" : `#${plan.hash.slice(0, 8)}`);
  $("plan-hash").title = plan?.hash ? `Hash of the text you see: ${plan.hash}` : "";
  put($("plan-title"), shown?.title ?? "");
  show($("plan-title"), Boolean(shown?.title));
  const intro = planIntro(state, plan, drafting);
  put($("plan-intro"), intro);
  show($("plan-intro"), intro !== "");
  $("plan-steps").replaceChildren(...(shown?.steps ?? []).map(step));
  const steps = shown?.steps.length ?? 0;
  show($("plan-fold"), steps > 0 || state.plans.size > 1);
  put($("plan-fold-head"), steps === 1 ? "1 step" : `${steps} steps`);
  // What waits for a person is open; what is decided folds itself away, once.
  const place = `${$("plan").dataset.status} ${shown?.version}`;
  if (foldedFor !== place) $("plan-fold").open = waiting || drafting;
  foldedFor = place;
  $("plan-extra").replaceChildren(...extras(state, shown, plan, drafting));
  show($("plan-approve"), waiting);
  put($("plan-approve"), plan ? `Approve plan ${plan.version}` : "Approve");
  show($("plan-changes"), waiting);
  show($("plan-dismiss"), waiting);
  show($("plan-back"), state.plan === true && plan?.status === "dismissed" && !drafting);
  show($("plan-present"), drafting);
  show($("plan-leave"), state.plan === true);
  show($("plan-buttons"), state.plan === true || waiting);
  if (!waiting) openChanges(false);
}

function planIntro(state, plan, drafting) {
  if (drafting) return "Calls that plan mode refused are kept here as steps. Nothing has been changed.";
  if (!plan) return `The agent may look and propose. Nothing changes until you approve a plan.${state.reason ? ` Reason: ${state.reason}` : ""}`;
  if (plan.status === "waiting") return state.draft.length > 0 ? `${state.draft.length} more refused since this was presented.` : "";
  return plan.comments ? `You asked: ${plan.comments}` : "";
}

function step({ title, detail, tools }) {
  const item = make("li", "content", make("span", "step-title", title));
  if (tools.length) item.append(" ", make("span", "tool-name", tools.join(", ")));
  if (detail) item.append(make("span", "step-detail", detail));
  return item;
}

function extras(state, shown, plan, drafting) {
  const out = [];
  const block = (head, texts) => { if (texts.length) out.push(make("h3", "", head), make("ul", "plain-list content", ...texts.map((t) => make("li", "", t)))); };
  block("The agent asks", shown?.questions ?? []);
  block("What could go wrong", shown?.risks ?? []);
  const older = [...state.plans.values()].filter((p) => drafting || p !== plan).reverse();
  if (older.length) {
    const rows = older.map((p) => make("li", "", make("b", "", `Plan ${p.version}`), " ", make("span", "chip", STATUS[p.status] ?? p.status), " ", make("span", "content", p.title)));
    out.push(make("details", "older", make("summary", "", older.length === 1 ? "1 other version" : `${older.length} other versions`), make("ul", "plain-list", ...rows)));
  }
  return out;
}

export function openChanges(on) {
  show($("plan-form"), on);
  $("plan-changes").setAttribute("aria-expanded", String(on));
  if (on) $("plan-comments").focus();
}

// ---- conversation

const SURFACES = { voice: "voice", chat: "chat", screen: "button", rest: "REST", client: "client", gateway: "" };
const lineNodes = new Map();
let lineFacts = "";

function drawLines(state) {
  const wanted = [...state.lines, ...state.partials.values()];
  const facts = JSON.stringify(wanted);
  if (facts === lineFacts) return;
  lineFacts = facts;
  const box = $("lines");
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
  const list = $("line-list");
  const keys = new Set(wanted.map((l) => l.key));
  for (const [key, node] of lineNodes) if (!keys.has(key)) { node.remove(); lineNodes.delete(key); }
  wanted.forEach((line, index) => {
    let node = lineNodes.get(line.key);
    if (!node) lineNodes.set(line.key, (node = make("li", "line")));
    drawLine(node, line);
    if (list.children[index] !== node) list.insertBefore(node, list.children[index] ?? null);
  });
  show($("talk-empty"), wanted.length === 0);
  if (atEnd) toEnd();
  else show($("tail"), true);
}

export function toEnd() {
  const box = $("lines");
  box.scrollTop = box.scrollHeight;
  show($("tail"), false);
}

function drawLine(node, line) {
  const facts = JSON.stringify(line);
  if (node.facts === facts) return;
  node.facts = facts;
  node.className = `line ${line.role}${line.partial ? " partial" : ""}${line.command ? " command" : ""}`;
  // A line that is still growing is not read out until it is finished.
  node.setAttribute("aria-live", line.partial ? "off" : "polite");
  const who = line.role === "user" ? "You" : line.command ? "voxgate" : "Agent";
  const head = make("span", "line-head", make("b", "", who));
  const surface = line.role === "user" ? SURFACES[line.surface] ?? line.surface : "";
  if (surface) head.append(make("span", "tag", surface));
  if (line.command && line.role === "user") {
    const tag = make("span", "tag strong", "to voxgate");
    tag.title = "A command or an answer: voxgate acted on it, the agent did not get it.";
    head.append(tag);
  }
  if (line.cut) head.append(make("span", "tag", "cut short"));
  if (line.partial) head.append(make("span", "tag", "…"));
  node.replaceChildren(head, make("p", "content", line.text));
}

// ---- tools and todo

const OUTCOME = { running: "running", waiting: "waits for you", ok: "ok", refused: "refused", failed: "failed" };

function drawTrace(state) {
  const entries = [...state.trace.values()].map((e) => ({ ...e, outcome: waits(state, e) ? "waiting" : e.outcome })).reverse();
  if (!changed("trace", entries)) return;
  show($("trace-empty"), entries.length === 0);
  put($("trace-count"), entries.length ? String(entries.length) : "");
  $("trace").replaceChildren(...entries.map(traced));
}

function traced(entry) {
  const head = make("div", "trace-head", make("span", "trace-name content", entry.name || entry.tool), make("span", `outcome ${entry.outcome}`, OUTCOME[entry.outcome]));
  const item = make("li", "", head);
  item.dataset.outcome = entry.outcome;
  item.title = entry.code ? `${entry.tool} · ${entry.code}` : entry.tool;
  if (entry.args && entry.args !== "{}") item.append(make("p", "args content", entry.args));
  if (entry.reason) item.append(make("p", "trace-reason content", entry.reason));
  if (entry.ms !== null && entry.outcome === "ok") head.append(make("span", "ms", entry.ms < 1000 ? `${Math.round(entry.ms)} ms` : `${(entry.ms / 1000).toFixed(1)} s`));
  return item;
}

const TODO_WORDS = { pending: "to do", in_progress: "in progress", completed: "done" };

function drawTodo(state) {
  if (!changed("todo", state.todo)) return;
  const done = state.todo.filter((t) => t.status === "completed").length;
  show($("todo-empty"), state.todo.length === 0);
  put($("todo-count"), state.todo.length ? `${done} of ${state.todo.length}` : "");
  $("todo").replaceChildren(...state.todo.map((t) => {
    const item = make("li", "", make("span", "hidden", `${TODO_WORDS[t.status] ?? t.status}: `), make("span", "content", t.content));
    item.dataset.status = t.status;
    return item;
  }));
}

// ---- microphone

const KEYS = !matchMedia("(hover: none), (max-width: 520px)").matches;
const MIC = {
  off: ["Microphone off", KEYS ? "Press it, or hold space to talk" : "Press it to talk", "Turn the microphone on"],
  failed: ["Can’t hear you", "", "Try the microphone again"],
  starting: ["Connecting…", "One moment", "Mute the microphone"],
  muted: ["Muted", KEYS ? "Hold space to talk, or press to unmute" : "Press to unmute", "Unmute the microphone"],
  listening: ["Listening", KEYS ? "Speak when you like; press to mute" : "Speak when you like", "Mute the microphone"],
  hearing: ["Hears you", "Go on; a short pause ends your turn", "Mute the microphone"],
  thinking: ["Working on it", "You can go on speaking", "Mute the microphone"],
  speaking: ["Speaking", KEYS ? "Talk over it, or press Esc to stop it" : "Talk over it, or press Stop", "Mute the microphone"],
  deaf: ["Can’t hear you", "", "Mute the microphone"],
};

export function drawMic({ word, problem, muted, voiceOn, canTalk, canStop, tones }) {
  const mic = $("mic");
  const [name, hint, action] = MIC[word];
  mic.dataset.state = word;
  mic.disabled = !canTalk && !voiceOn;
  mic.setAttribute("aria-label", voiceOn && muted ? MIC.muted[2] : action);
  put($("mic-state"), name);
  put($("mic-hint"), problem || hint || "Sound arrives, but nothing can be heard in it.");
  $("mic-hint").dataset.bad = String(Boolean(problem));
  show($("mic-off"), voiceOn);
  show($("stop"), canStop);
  $("tones").setAttribute("aria-pressed", String(tones));
  put($("tones"), tones ? "Tones on" : "Tones off");
}

// `level` is the root mean square of 20 ms, 0 to 1; the ring shows -60 to -10 dBFS.
export function drawLevel(level) {
  const db = 20 * Math.log10(level + 1e-6);
  $("mic").style.setProperty("--level", String(Math.max(0, Math.min(1, (db + 60) / 50)).toFixed(2)));
}
