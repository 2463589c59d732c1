// The page in a real Chromium against the mock gateway.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch } from "./chromium.mjs";
import { Mock, SCENES } from "./mock.mjs";

let browser;
const mocks = [];

before(async () => { browser = await launch(); });
after(async () => {
  await browser.close();
  for (const mock of mocks) await mock.stop().catch(() => {});
});

// A page that has come in by its link, and what its console complained about.
async function open(options = {}) {
  const mock = await Mock.start(options);
  mocks.push(mock);
  const page = await browser.context.newPage();
  page.setDefaultTimeout(5000);
  page.complaints = [];
  page.on("console", (m) => { if (m.type() === "error") page.complaints.push(m.text()); });
  page.on("pageerror", (e) => page.complaints.push(String(e)));
  await page.goto(mock.link);
  await page.waitForSelector('#conn[data-state="open"]');
  await page.waitForFunction(() => document.querySelector("#badge").dataset.mode !== "unknown");
  return { mock, page };
}

const text = (page, selector) => page.textContent(selector);
const until = (page, selector, wanted) => page.waitForFunction(([s, w]) => document.querySelector(s)?.textContent.includes(w), [selector, wanted]);
const badge = (page, mode) => page.waitForSelector(`#badge[data-mode="${mode}"]`);
const linesOf = (page) => page.$$eval("#line-list .line p", (nodes) => nodes.map((n) => n.textContent));

async function eventually(check, what, ms = 5000) {
  const end = Date.now() + ms;
  while (!(await check())) {
    assert.ok(Date.now() < end, `${what} did not happen within ${ms} ms`);
    await new Promise((r) => setTimeout(r, 25));
  }
}

// ---- the way in

test("the link's code is traded once, leaves the address bar, and the page opens empty", async () => {
  const { mock, page } = await open();
  assert.equal(new URL(page.url()).hash, "");
  assert.equal(mock.linkTries, 1);
  assert.equal(await text(page, "#convo"), mock.session);
  assert.ok(await page.isVisible("#talk-empty"));
  assert.equal(await page.getAttribute("#badge", "data-mode"), "default");
  await page.reload();
  await page.waitForSelector('#conn[data-state="open"]');
  assert.equal(mock.linkTries, 1, "a reload goes on with the key of this tab");
  assert.deepEqual(page.complaints, []);
  await page.close();
});

test("without a key the page says which command prints a link", async () => {
  const { mock } = await open();
  const page = await browser.context.newPage();
  await page.goto(mock.origin);
  assert.ok(await page.isVisible("#door"));
  assert.ok(!(await page.isVisible("#app")));
  assert.match(await text(page, "#door"), /voxgate link/);
  await page.goto(`${mock.origin}/?x#code=${"ONCE-1"}`);
  await until(page, "#door-text", "used before");
  assert.equal(new URL(page.url()).hash, "");
  await page.close();
});

test("a key that is no longer valid leads back to the link screen", async () => {
  const { mock, page } = await open();
  mock.keyWorks = false;
  mock.dropMirrors();
  await page.waitForSelector("#door:not([hidden])");
  assert.match(await text(page, "#door-text"), /no longer valid/);
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  await page.close();
});

// ---- mode

test("the badge is drawn from state alone", async () => {
  const { mock, page } = await open();
  mock.send("plan_mode", { plan_mode: true, draining: 2, restored: true, modes: { shown: "plan" } });
  await badge(page, "plan");
  assert.equal(await text(page, "#badge-name"), "PLAN MODE");
  assert.match(await text(page, "#badge-note"), /restored.*2 calls still running/);
  assert.match(await page.title(), /PLAN/);
  mock.send("transcript", { role: "assistant", text: "Plan mode is off now.", is_partial: false, item_id: "lie", surface: "voice", for_agent: true });
  await until(page, "#line-list", "is off now");
  assert.equal(await page.getAttribute("#badge", "data-mode"), "plan");
  mock.send("plan_mode", { plan_mode: true, draining: 0, restored: false });
  await page.waitForFunction(() => document.querySelector("#badge-note").hidden);
  mock.send("plan_mode", { plan_mode: "perhaps", draining: 0 });
  await badge(page, "unknown");
  mock.send("plan_mode", { plan_mode: false, draining: 0 });
  await badge(page, "default");
  await page.click("#mode-button");
  assert.deepEqual((await mock.told((m) => m.type === "mode")).payload, { posture: "plan" });
  assert.ok(!(await page.$("main #badge")), "the badge stands outside everything that shows content");
  await page.close();
});

// ---- plan

const PLAN = { version: 1, hash: "9f31c2d4a7b80e55", title: "Shop.", status: "waiting", approve: "approve", steps: [{ index: 1, title: "Add buy eggs", detail: "", tools: ["notes__add"] }, { index: 2, title: "Look again", detail: "", tools: [] }] };

async function planned() {
  const both = await open();
  both.mock.send("plan_mode", { plan_mode: true, draining: 0 });
  both.mock.send("plan_review", PLAN);
  await until(both.page, "#plan-status", "waiting for you");
  return both;
}

test("the plan card shows version, hash, title and numbered steps, and approves exactly that text", async () => {
  const { mock, page } = await planned();
  assert.equal(await text(page, "#plan-head"), "Plan 1");
  assert.equal(await text(page, "#plan-hash"), "#9f31c2d4");
  assert.deepEqual(await page.$$eval("#plan-steps .step-title", (n) => n.map((x) => x.textContent)), ["Add buy eggs", "Look again"]);
  await page.click("#plan-approve");
  const told = await mock.told((m) => m.type === "plan_decision");
  assert.deepEqual(told.payload, { version: 1, hash: PLAN.hash, decision: "approve" });
  assert.ok(told.msg_id.length >= 32);
  mock.send("plan_review", { version: 1, status: "approved" });
  mock.send("plan_mode", { plan_mode: false, approved: true, draining: 0 });
  await badge(page, "default");
  await until(page, "#plan-status", "approved");
  assert.ok(!(await page.isVisible("#plan-approve")));
  await page.close();
});

test("changes, setting aside, going back and leaving each send their own decision", async () => {
  const { mock, page } = await planned();
  await page.click("#plan-changes");
  await page.keyboard.type("Only the eggs, please.");
  await page.click('#plan-form [type="submit"]');
  const changes = await mock.told((m) => m.payload.decision === "request_changes");
  assert.deepEqual(changes.payload, { version: 1, hash: PLAN.hash, decision: "request_changes", comments: "Only the eggs, please." });
  await page.waitForSelector("#plan-form", { state: "hidden" });
  await page.click("#plan-dismiss");
  await mock.told((m) => m.payload.decision === "dismiss");
  mock.send("plan_review", { version: 1, status: "dismissed" });
  await page.click("#plan-back");
  await mock.told((m) => m.payload.decision === "back_to_review");
  await page.click("#plan-leave");
  assert.ok(!mock.received.some((m) => m.payload.decision === "leave"), "one press only asks");
  await page.click("#plan-leave");
  await mock.told((m) => m.payload.decision === "leave");
  await page.close();
});

test("what is typed as comment survives a frame that arrives meanwhile", async () => {
  const { mock, page } = await planned();
  await page.click("#plan-changes");
  await page.keyboard.type("First half");
  mock.send("plan_review", { ...PLAN, title: "Shop again." });
  await until(page, "#plan-title", "Shop again.");
  await page.keyboard.type(", second half");
  assert.equal(await page.inputValue("#plan-comments"), "First half, second half");
  await page.close();
});

test("a decision that is not accepted is said", async () => {
  const { mock, page } = await planned();
  mock.onControl = () => ({ ok: false, code: "plan_changed", message: "The plan is another one now; look again." });
  await page.click("#plan-approve");
  await until(page, "#say-error", "look again");
  await page.close();
});

test("a draft that was never presented can be asked for, a newer version takes the place of an older", async () => {
  const { mock, page } = await open();
  mock.send("plan_mode", { plan_mode: true, draining: 0 });
  mock.send("plan_draft", { steps: [{ title: "Add buy eggs", tools: ["notes__add"] }] });
  await until(page, "#plan-status", "not presented");
  await page.click("#plan-present");
  assert.equal((await mock.told((m) => m.type === "chat")).payload.text, "Present the plan.");
  mock.send("plan_review", PLAN);
  mock.send("plan_review", { ...PLAN, status: "superseded" });
  mock.send("plan_review", { ...PLAN, version: 2, hash: "aa", title: "Second." });
  await until(page, "#plan-head", "Plan 2");
  await page.click("#plan-approve");
  assert.equal((await mock.told((m) => m.payload.decision === "approve")).payload.version, 2);
  await page.close();
});

// ---- questions

const QUESTION = { id: "q1", kind: "tool", text: "Add buy eggs to your notes?", request_id: "q1" };

test("a question is answered once by its request, and shows who can answer and until when", async () => {
  const { mock, page } = await open();
  mock.send("approval_request", { request_id: "q1", tool: "notes__add", args: { text: "buy eggs" }, permission_tier: "confirm", reason: QUESTION.text });
  mock.send("question", { ...QUESTION, state: "asked" });
  await until(page, "#question-text", QUESTION.text);
  assert.ok(!(await page.isVisible("#question-window")), "no window before it was heard");
  mock.send("question", { ...QUESTION, state: "heard" });
  await until(page, "#question-left", "s to answer aloud");
  mock.send("question", { ...QUESTION, state: "screen_only" });
  await until(page, "#question-who", "on screen only");
  await page.waitForSelector("#question-window", { state: "hidden" });
  await page.click("#question-yes");
  assert.deepEqual((await mock.told((m) => m.type === "approval_decision")).payload, { request_id: "q1", decision: "approve" });
  mock.send("approval_resolved", { request_id: "q1", status: "approved" });
  mock.send("question", { ...QUESTION, state: "answered", outcome: "approved" });
  await page.waitForSelector("#question", { state: "hidden" });
  await page.close();
});

test("deny, and the second step of approving and of leaving", async () => {
  const { mock, page } = await planned();
  mock.send("question", { ...QUESTION, state: "heard" });
  await page.click("#question-no");
  assert.equal((await mock.told((m) => m.type === "approval_decision")).payload.decision, "deny");
  mock.send("question", { ...QUESTION, state: "answered" });
  mock.send("question", { id: "q2", kind: "approve", text: "Plan one has two steps. Approve it?", version: 1, state: "heard" });
  await until(page, "#question-yes", "Approve plan 1");
  await page.click("#question-yes");
  assert.deepEqual((await mock.told((m) => m.type === "plan_decision")).payload, { version: 1, hash: PLAN.hash, decision: "approve" });
  mock.send("question", { id: "q2", kind: "approve", text: "", version: 1, state: "expired" });
  mock.send("question", { id: "q3", kind: "leave", text: "Leave plan mode? Nothing was approved.", state: "heard" });
  await until(page, "#question-no", "Stay in plan mode");
  await page.click("#question-yes");
  await mock.told((m) => m.payload.decision === "leave");
  await page.click("#question-no");
  await mock.told((m) => m.type === "mode" && m.payload.posture === "plan");
  await page.close();
});

// ---- conversation, tools, todo

test("partials grow in place, finals take their place, commands are marked", async () => {
  const { mock, page } = await open();
  mock.pass("transcript", { role: "user", text: "Add buy", is_partial: true, item_id: "i1" });
  await until(page, "#line-list", "Add buy");
  mock.pass("transcript", { role: "user", text: "Add buy eggs", is_partial: true, item_id: "i1" });
  await until(page, "#line-list", "Add buy eggs");
  assert.equal(await page.locator("#line-list .line.partial").count(), 1);
  mock.send("transcript", { role: "user", text: "Add buy eggs to my notes.", is_partial: false, item_id: "i1", surface: "voice", for_agent: true });
  await page.waitForSelector("#line-list .line.partial", { state: "detached" });
  mock.pass("transcript", { role: "user", text: "Add buy eggs to my", is_partial: true, item_id: "i1" });
  mock.send("transcript", { role: "user", text: "/plan status", is_partial: false, item_id: "i2", surface: "chat", for_agent: false });
  await until(page, "#line-list .line.command", "to voxgate");
  assert.deepEqual(await linesOf(page), ["Add buy eggs to my notes.", "/plan status"]);
  assert.match(await text(page, "#line-list .line.command"), /chat/);
  mock.send("transcript", { role: "assistant", text: "Plan mode", is_partial: false, item_id: "i3", for_agent: true });
  mock.send("speech", { text: "Plan mode is off and has been for long.", heard_ms: 400, total_ms: 3000 });
  await until(page, "#line-list", "cut short");
  await page.close();
});

test("the trace tells running, waiting, ok and refused with its reason; the list of things to do is whole", async () => {
  const { mock, page } = await open();
  SCENES.question(mock);
  await until(page, "#trace", "waits for you");
  const outcomes = await page.$$eval("#trace .outcome", (n) => n.map((x) => x.textContent));
  assert.deepEqual(outcomes, ["waits for you", "refused", "ok", "ok"]);
  assert.match(await text(page, "#trace .trace-reason"), /nothing was changed/);
  mock.send("approval_resolved", { request_id: "q1", status: "approved" });
  await until(page, "#trace", "running");
  mock.send("tool_result", { tool: "notes__add", call_id: "c4", success: true, error: "", error_code: "", latency_ms: 7 });
  await page.waitForFunction(() => document.querySelector("#trace .outcome").textContent === "ok");
  assert.equal(await text(page, "#todo-count"), "1 of 3");
  await page.close();
});

test("chat goes out, and comes back into the box when it was not taken", async () => {
  const { mock, page } = await open();
  await page.fill("#text", "/plan on look at the notes");
  await page.keyboard.press("Enter");
  assert.deepEqual((await mock.told((m) => m.type === "chat")).payload, { text: "/plan on look at the notes" });
  assert.equal(await page.inputValue("#text"), "");
  mock.onControl = () => ({ ok: false, code: "busy", message: "Wait a moment." });
  await page.fill("#text", "again");
  await page.keyboard.press("Enter");
  await until(page, "#say-error", "Wait a moment.");
  assert.equal(await page.inputValue("#text"), "again");
  await page.close();
});

// ---- the connection

test("after a drop the page goes on behind the last number: no gap, no duplicate", async () => {
  const { mock, page } = await open();
  const say = (n) => mock.send("transcript", { role: "user", text: `line ${n}`, is_partial: false, surface: "chat", for_agent: true });
  for (let n = 1; n <= 3; n++) say(n);
  await until(page, "#line-list", "line 3");
  mock.repeat(2);
  mock.dropMirrors();
  for (let n = 4; n <= 6; n++) say(n);
  await until(page, "#line-list", "line 6");
  assert.equal(mock.sinceAsked.at(-1), 3);
  say(7);
  await until(page, "#line-list", "line 7");
  assert.deepEqual(await linesOf(page), [1, 2, 3, 4, 5, 6, 7].map((n) => `line ${n}`));
  await page.close();
});

test("a number that is missing, and a `since` that is no longer kept, end in a whole new snapshot", async () => {
  const { mock, page } = await open();
  const say = (n) => mock.send("transcript", { role: "user", text: `line ${n}`, is_partial: false, surface: "chat", for_agent: true });
  say(1);
  await until(page, "#line-list", "line 1");
  const mirrors = [...mock.mirrors];
  mock.mirrors.clear();
  say(2);
  for (const ws of mirrors) mock.mirrors.add(ws);
  say(3);
  await until(page, "#line-list", "line 3");
  assert.equal(mock.sinceAsked.at(-1), null);
  mock.forgets = true;
  mock.dropMirrors();
  say(4);
  await until(page, "#line-list", "line 4");
  assert.deepEqual(await linesOf(page), ["line 1", "line 2", "line 3", "line 4"]);
  await page.close();
});

test("when the gateway is gone the page says so, sends nothing, and comes back by itself", async () => {
  const { mock, page } = await open();
  await mock.stop();
  await page.waitForSelector('#conn[data-state="unreachable"]');
  await until(page, "#banner", "does not answer");
  assert.ok(await page.isDisabled("#send"));
  await mock.listen(mock.port);
  await page.waitForSelector('#conn[data-state="open"]', { timeout: 15000 });
  await page.waitForSelector("#banner", { state: "hidden" });
  await page.close();
});

// ---- text that would like to be more than text

const PAYLOADS = [
  "<script>window.pwned=1</script>", "<img src=x onerror=\"window.pwned=1\">", "<svg onload=window.pwned=1>", "<b>approved</b>",
  "</p></main><div id=badge data-mode=default>Default</div>", "<iframe src=javascript:window.pwned=1></iframe>", "javascript:window.pwned=1",
  "\"><script>window.pwned=1</script>", "'-window.pwned=1-'", "{{constructor.constructor('window.pwned=1')()}}", "${window.pwned=1}",
  "<style>#badge{display:none}</style>", "<a href=//example.org>approve here</a>", "&lt;script&gt;window.pwned=1&lt;/script&gt;",
  "<form action=/api/sessions/x/plan_mode method=post><button>Approve</button></form>", "<meta http-equiv=refresh content=0;url=//example.org>",
  "<details open ontoggle=window.pwned=1>", "<template><script>window.pwned=1</script></template>", "status: approved \u202Edevorppa\u202C\u2066",
  "<math><mtext></p><img src=x onerror=window.pwned=1></mtext></math>",
];

// Puts these twenty texts everywhere a text from outside can go.
async function fill(mock, page, texts) {
  for (const [n, text] of texts.entries()) {
    mock.send("transcript", { role: n % 2 ? "user" : "assistant", text, is_partial: false, item_id: `x${n}`, surface: text, for_agent: n % 3 > 0 });
    mock.send("tool_start", { tool: text, call_id: `c${n}`, display_name: text, args_preview: text });
    mock.send("tool_result", { tool: text, call_id: `c${n}`, success: false, error: text, error_code: text, latency_ms: 1 });
    mock.send("notice", { code: text, message: text });
  }
  mock.send("todo_update", { todos: texts.map((content, id) => ({ id: String(id), content, status: content })) });
  mock.send("plan_mode", { plan_mode: true, reason: texts[0], modes: { shown: texts[3] } });
  mock.send("plan_review", { ...PLAN, title: texts[4], hash: texts[1], steps: texts.map((title) => ({ title, detail: title, tools: [title] })), open_questions: texts, risks: texts });
  mock.send("approval_request", { request_id: "r9", tool: texts[1], args: { text: texts[2] }, reason: texts[3] });
  mock.send("question", { id: "r1", kind: texts[0], text: texts[1], state: "asked" });
  mock.onControl = () => ({ ok: false, code: texts[1], message: texts[1] });
  await page.fill("#text", "x");
  await page.keyboard.press("Enter");
  await until(page, "#say-error", texts[1]);
  await until(page, "#question-text", texts[1]);
  return page.$$eval("#app, #app *", (all) => all.map((n) => `${n.localName} ${n.getAttributeNames().sort()}`));
}

test("text from outside stays text, wherever it is shown", async () => {
  assert.equal(PAYLOADS.length, 20);
  const harmless = await open();
  const wanted = await fill(harmless.mock, harmless.page, PAYLOADS.map((_, n) => `words ${n}`));
  const { mock, page } = await open();
  const requests = [];
  page.on("request", (r) => { if (!r.url().endsWith("/icon.svg")) requests.push(r.url()); });
  const seen = await fill(mock, page, PAYLOADS);
  assert.deepEqual(seen, wanted, "the very elements and attributes that harmless words get");
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  await badge(page, "plan");
  assert.equal(await text(page, "#badge-name"), "PLAN MODE");
  const shown = await linesOf(page);
  for (const evil of PAYLOADS) assert.ok(shown.includes(evil.replace(/[\u202a-\u202e\u2066-\u2069]/g, "")), evil);
  assert.ok(shown.every((t) => !/[\u202a-\u202e\u2066-\u2069]/.test(t)), "no mark that turns the text around");
  assert.deepEqual(requests, []);
  assert.deepEqual(page.complaints, []);
  await harmless.page.close();
  await page.close();
});

// ---- keyboard

test("hold space to talk: sound while it is held, silence after; not in the text box, not on a button", async () => {
  const { mock, page } = await planned();
  await page.focus("#text");
  await page.keyboard.press("Space");
  assert.equal(await page.inputValue("#text"), " ");
  await page.focus("#plan-approve");
  await page.keyboard.press("Space");
  await mock.told((m) => m.payload.decision === "approve");
  assert.equal(mock.voices.size, 0);
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.down("Space");
  await page.waitForSelector('#mic[data-state="listening"]');
  await eventually(() => mock.heard.some(loud), "sound");
  await page.keyboard.up("Space");
  await page.waitForSelector('#mic[data-state="muted"]');
  await page.waitForTimeout(300);
  mock.heard.length = 0;
  await page.waitForTimeout(1500);
  assert.ok(mock.heard.length > 40, "silence is sent as sound, so that the end of a turn is heard");
  assert.ok(!mock.heard.some(loud));
  await page.close();
});

const samples = (event) => {
  const bytes = Buffer.from(event.audio, "base64");
  return new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
};
const loud = (event) => event.type === "input_audio_buffer.append" && samples(event).some((s) => Math.abs(s) > 300);

test("the keyboard reaches everything in the order it is looked at", async () => {
  const { page } = await planned();
  const order = [];
  await page.evaluate(() => { document.activeElement.blur(); getSelection().removeAllRanges(); });
  for (let n = 0; n < 30 && order.at(-1) !== "send"; n++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => document.activeElement.id || document.activeElement.className || document.activeElement.localName);
    order.push(at);
    const ring = await page.evaluate(() => parseFloat(getComputedStyle(document.activeElement).outlineWidth));
    assert.ok(ring >= 2, `${at} shows its focus`);
  }
  const expected = ["skip", "plan-fold-head", "plan-approve", "plan-changes", "plan-dismiss", "plan-leave", "lines", "mic", "tones", "text", "send"];
  assert.deepEqual(order.filter((id) => expected.includes(id)), expected);
  await page.focus("#mic");
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "text");
  assert.equal(await page.inputValue("#text"), "/");
  await page.close();
});

// ---- voice

test("the microphone: session, 24 kHz frames in real time, states, mute, off", async () => {
  const { mock, page } = await open();
  await page.click("#mic");
  await page.waitForSelector('#mic[data-state="listening"]');
  assert.equal(mock.conversationAsked, mock.session);
  const update = mock.heard.find((e) => e.type === "session.update").session;
  assert.equal(update.type, "realtime");
  assert.deepEqual(update.audio.input, { format: { type: "audio/pcm", rate: 24000 }, turn_detection: { type: "server_vad" } });
  const count = () => mock.heard.filter((e) => e.type === "input_audio_buffer.append").length;
  const [from, began] = [count(), Date.now()];
  await page.waitForTimeout(2000);
  const perSecond = ((count() - from) * 480 * 1000) / (Date.now() - began);
  assert.ok(Math.abs(perSecond - 24000) < 2400, `${perSecond} samples a second`);
  assert.equal(samples(mock.heard.findLast((e) => e.audio)).length, 480);
  mock.speak({ type: "input_audio_buffer.speech_started", audio_start_ms: 0, item_id: "u1" });
  await page.waitForSelector('#mic[data-state="hearing"]');
  mock.speak({ type: "input_audio_buffer.speech_stopped", audio_end_ms: 500, item_id: "u1" });
  mock.send("voice_state", { state: "processing" });
  await page.waitForSelector('#mic[data-state="thinking"]');
  mock.send("voice_state", { state: "error" });
  await page.waitForSelector('#mic[data-state="deaf"]');
  mock.send("voice_state", { state: "listening" });
  await page.click("#mic");
  await page.waitForSelector('#mic[data-state="muted"]');
  await page.click("#mic-off");
  await page.waitForSelector('#mic[data-state="off"]');
  await eventually(() => mock.voices.size === 0, "the voice socket closing");
  assert.deepEqual(page.complaints, []);
  await page.close();
});

test("speech over playback stops it and says how much was heard", async () => {
  const { mock, page } = await open();
  await page.click("#mic");
  await page.waitForSelector('#mic[data-state="listening"]');
  mock.speakTone("a1", 3);
  await page.waitForSelector('#mic[data-state="speaking"]');
  const began = Date.now();
  await page.waitForTimeout(800);
  mock.speak({ type: "input_audio_buffer.speech_started", audio_start_ms: 0, item_id: "u1" });
  await page.waitForSelector('#mic[data-state="hearing"]');
  const stopped = Date.now();
  await eventually(() => mock.heard.some((e) => e.type === "conversation.item.truncate"), "truncate");
  const cuts = mock.heard.filter((e) => e.type === "conversation.item.truncate");
  assert.equal(cuts.length, 1);
  assert.equal(cuts[0].item_id, "a1");
  assert.equal(cuts[0].content_index, 0);
  assert.ok(Number.isInteger(cuts[0].audio_end_ms));
  assert.ok(Math.abs(cuts[0].audio_end_ms - (stopped - began)) < 350, `${cuts[0].audio_end_ms} ms heard of ${stopped - began}`);
  mock.speakTone("a1", 1);
  await page.waitForTimeout(300);
  assert.equal(await page.getAttribute("#mic", "data-state"), "hearing", "late sound of a cut item is not played");
  mock.speak({ type: "input_audio_buffer.speech_stopped", audio_end_ms: 1, item_id: "u1" });
  mock.speakTone("a2", 0.5);
  await page.waitForSelector('#mic[data-state="speaking"]');
  await page.waitForSelector('#mic[data-state="listening"]');
  mock.speak({ type: "input_audio_buffer.speech_started", audio_start_ms: 0, item_id: "u2" });
  await page.waitForTimeout(200);
  assert.equal(mock.heard.filter((e) => e.type === "conversation.item.truncate").length, 1, "what was heard to its end is not cut");
  await page.close();
});

test("Esc stops the voice here and tells the gateway", async () => {
  const { mock, page } = await open();
  await page.click("#mic");
  await page.waitForSelector('#mic[data-state="listening"]');
  mock.speakTone("a1", 3);
  await page.waitForSelector("#stop:not([hidden])");
  await page.keyboard.press("Escape");
  assert.deepEqual((await mock.told((m) => m.type === "stop")).payload, { scope: "speech" });
  await page.waitForSelector('#mic[data-state="listening"]');
  await page.close();
});

test("a voice connection that drops is taken up again", async () => {
  const { mock, page } = await open();
  await page.click("#mic");
  await page.waitForSelector('#mic[data-state="listening"]');
  for (const ws of mock.voices) ws.terminate();
  await page.waitForSelector('#mic[data-state="starting"]');
  await page.waitForSelector('#mic[data-state="listening"]');
  await page.close();
});

test("the resampler keeps a tone, its length and its level, and lets nothing fold back", async () => {
  const { page } = await open();
  const results = await page.evaluate(async () => {
    const { Resampler } = await import("/resample.js");
    const tone = (hz, rate, seconds) => Float32Array.from({ length: rate * seconds }, (_, n) => 0.5 * Math.sin((2 * Math.PI * hz * n) / rate));
    const run = (from, to, hz) => {
      const resampler = new Resampler(from, to);
      const input = tone(hz, from, 1);
      const out = [];
      for (let n = 0; n < input.length; n += 128) out.push(...resampler.process(input.subarray(n, n + 128)));
      return out;
    };
    // Part of the signal that is not the tone itself, in dB below it.
    const clean = (out, hz, rate) => {
      const part = out.slice(2000, 2000 + Math.floor(rate / 2));
      let [re, im, all] = [0, 0, 0];
      part.forEach((s, n) => { re += s * Math.cos((2 * Math.PI * hz * n) / rate); im += s * Math.sin((2 * Math.PI * hz * n) / rate); all += s * s; });
      const toneEnergy = (2 * (re * re + im * im)) / part.length;
      return { db: 10 * Math.log10(toneEnergy / Math.max(1e-12, all - toneEnergy)), level: Math.sqrt((2 * all) / part.length) };
    };
    const rows = [];
    for (const [from, to] of [[48000, 24000], [44100, 24000], [24000, 48000], [24000, 44100], [16000, 24000]]) {
      const out = run(from, to, 1000);
      rows.push({ from, to, length: out.length, ...clean(out, 1000, to) });
    }
    const folded = run(48000, 24000, 15000).slice(2000);
    return { rows, folded: 20 * Math.log10(Math.sqrt(folded.reduce((s, x) => s + x * x, 0) / folded.length) / 0.3535) };
  });
  for (const row of results.rows) {
    assert.ok(row.db > 60, JSON.stringify(row));
    assert.ok(Math.abs(row.level - 0.5) < 0.005, JSON.stringify(row));
    assert.ok(Math.abs(row.length - row.to) < 60, JSON.stringify(row));
  }
  assert.ok(results.folded < -60, `15 kHz folds back at ${results.folded} dB`);
  await page.close();
});

// ---- looks

test("nothing sticks out at phone width, and all text can be told from its ground (AA)", async () => {
  for (const dark of [false, true]) {
    for (const width of [390, 1280]) {
      for (const scene of Object.keys(SCENES)) {
        const { mock, page } = await open();
        await page.setViewportSize({ width, height: width === 390 ? 844 : 800 });
        await page.emulateMedia({ colorScheme: dark ? "dark" : "light", reducedMotion: "reduce" });
        SCENES[scene](mock);
        await page.waitForTimeout(250);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, `${scene} at ${width}`);
        const pale = await page.evaluate(paleTexts);
        assert.deepEqual(pale, [], `${scene} at ${width}, ${dark ? "dark" : "light"}`);
        await page.close();
      }
    }
  }
});

// Runs in the page: texts whose contrast with what lies behind them is under 4.5 to 1.
function paleTexts() {
  const parse = (colour) => {
    const [r, g, b, a = 1] = colour.match(/[\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const over = (top, under) => ({ r: top.r * top.a + under.r * (1 - top.a), g: top.g * top.a + under.g * (1 - top.a), b: top.b * top.a + under.b * (1 - top.a), a: 1 });
  const light = ({ r, g, b }) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    if (!node) return { r: 255, g: 255, b: 255, a: 1 };
    const own = parse(getComputedStyle(node).backgroundColor);
    return own.a === 1 ? own : over(own, ground(node.parentElement));
  };
  const found = [];
  for (const node of document.querySelectorAll("#app *")) {
    const words = [...node.childNodes].filter((n) => n.nodeType === 3 && n.data.trim()).map((n) => n.data.trim()).join(" ");
    if (!words || !node.checkVisibility() || node.closest(":disabled, .hidden, .skip")) continue;
    const under = ground(node);
    const opacity = parseFloat(getComputedStyle(node).opacity);
    const ink = over({ ...parse(getComputedStyle(node).color), a: parse(getComputedStyle(node).color).a * opacity }, under);
    const [hi, lo] = [light(ink), light(under)].sort((a, b) => b - a);
    const ratio = (hi + 0.05) / (lo + 0.05);
    if (ratio < 4.5) found.push(`${words.slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return found;
}
