// What the page knows: the fold of the snapshot and the numbered frames that follow it. Pure; draws nothing, sends nothing.
// Every text from the wire is cut to a length and cleared of control characters here, once.

const LINES_MAX = 500;
const TRACE_MAX = 200;
const NOTICES_MAX = 4;
const TEXT_MAX = 8000;
const SPOKEN_WINDOW_MS = 15000; // how long a question can be answered aloud once it was heard
// A partial line that nobody finished goes after this; the voice may read a plan for a while.
const PARTIAL_MAX_MS = { user: 15000, assistant: 90000 };

// Control characters, and the marks that could reorder the text around them.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export function clean(value, max = TEXT_MAX) {
  if (value === null || value === undefined) return "";
  const text = (typeof value === "string" ? value : JSON.stringify(value)).replace(UNSEEN, "");
  return text.length > max ? text.slice(0, max) + "…" : text;
}

const count = (value) => (Number.isFinite(value) && value > 0 ? Math.floor(value) : 0);
const list = (value) => (Array.isArray(value) ? value : []);

export function fresh() {
  return {
    session: "", known: false,
    plan: null, // true, false, or null while unknown
    modeName: "", draining: 0, restored: false, reason: "",
    plans: new Map(), draft: [], question: null, approvals: new Map(),
    todo: [], lines: [], partials: new Map(), trace: new Map(), notices: [],
    voice: "idle", ended: "",
  };
}

// A whole snapshot takes the place of everything but the notices.
export function takeSnapshot(state, payload, now) {
  const notices = state.notices;
  Object.assign(state, fresh(), { notices, known: true });
  state.session = clean(payload.session_id, 1024);
  takeMode(state, typeof payload.plan_mode === "object" && payload.plan_mode ? { ...payload, ...payload.plan_mode } : payload);
  for (const plan of list(payload.plans)) takePlan(state, plan);
  takeDraft(state, payload.draft);
  if (payload.question) takeQuestion(state, payload.question, null);
  for (const approval of list(payload.approvals)) takeApproval(state, approval);
  takeTodo(state, payload.todo);
  for (const line of list(payload.transcript)) takeLine(state, line, line.seq, now);
  for (const call of list(payload.tools)) takeTraced(state, call);
  state.voice = clean(payload.voice_state?.state ?? payload.voice_state, 20) || "idle";
  if (payload.ended) state.ended = "ended";
}

// Notices that tell nothing the page does not show anyway.
const QUIET = ["conversation_started", "conversation_resumed"];

const takers = {
  transcript: (s, p, f, now) => takeLine(s, p, f.seq, now),
  plan_mode: (s, p) => takeMode(s, p),
  plan_review: (s, p) => (p.status === "draft" ? takeDraft(s, p.steps) : takePlan(s, p)),
  question: (s, p, _f, now) => takeQuestion(s, p, now),
  approval_request: (s, p) => takeApproval(s, p),
  approval_resolved: (s, p) => s.approvals.delete(clean(p.request_id ?? p.id, 128)),
  tool_start: (s, p) => takeStart(s, p),
  tool_result: (s, p) => takeResult(s, p),
  todo_update: (s, p) => takeTodo(s, p.todos ?? p.todo ?? p.items),
  speech: (s, p) => takeSpeech(s, p),
  voice_state: (s, p) => { s.voice = clean(p.state, 20) || "idle"; },
  notice: (s, p) => { if (!QUIET.includes(p.code)) addNotice(s, p.code, p.message); },
  error: (s, p) => addNotice(s, p.code ?? "error", p.message),
  session_end: (s, p) => { s.ended = clean(p.reason, 300) || "ended"; },
};

// Folds one frame in. False when the page does not know its type.
export function takeFrame(state, frame, now) {
  const take = Object.hasOwn(takers, frame.type) ? takers[frame.type] : null;
  if (!take) return false;
  take(state, frame.payload && typeof frame.payload === "object" ? frame.payload : {}, frame, now);
  return true;
}

function takeMode(state, p) {
  state.plan = typeof p.plan_mode === "boolean" ? p.plan_mode : null;
  state.draining = count(p.draining);
  state.restored = p.restored === true && state.plan === true;
  state.reason = state.plan ? clean(p.reason, 300) : "";
  if (typeof p.modes?.current === "string") state.modeName = clean(p.modes.current, 24);
}

function takePlan(state, p) {
  const version = count(p.version);
  if (!version) return;
  const old = state.plans.get(version);
  const plan = {
    version,
    hash: clean(p.hash, 128) || old?.hash || "",
    title: clean(p.title ?? p.summary, 200) || old?.title || "",
    status: clean(p.status, 24) || old?.status || "waiting",
    comments: clean(p.comments, 2000) || old?.comments || "",
    steps: Array.isArray(p.steps) ? steps(p.steps) : old?.steps ?? [],
    questions: Array.isArray(p.open_questions) ? p.open_questions.map((t) => clean(t, 500)) : old?.questions ?? [],
    risks: Array.isArray(p.risks) ? p.risks.map((t) => clean(t, 500)) : old?.risks ?? [],
  };
  state.plans.set(version, plan);
}

function steps(given) {
  return given.slice(0, 100).map((s) => (typeof s === "string"
    ? { title: clean(s, 200), detail: "", tools: [], call: "" }
    : { title: clean(s?.title, 200), detail: clean(s?.detail, 2000), tools: list(s?.tools).slice(0, 8).map((t) => clean(t, 80)), call: kept(s?.call) }));
}

// The refused call that an approval makes again, as one line: nobody should approve it unseen.
function kept(call) { return call?.tool ? `${clean(call.tool, 80)} ${clean(call.args, 400)}` : ""; }

function takeDraft(state, given) { state.draft = steps(list(given)); }

const words = (title) => title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();

// The steps of the draft that the newest plan does not hold yet. A plan that is decided for good holds none of them.
export function undrafted(state) {
  const plan = newest(state);
  const settled = !plan || ["approved", "completed", "superseded"].includes(plan.status);
  return settled ? state.draft : state.draft.filter((d) => !plan.steps.some((s) => words(s.title) === words(d.title)));
}

export const newest = (state) => state.plans.get(Math.max(...state.plans.keys())) ?? null;

function takeQuestion(state, p, now) {
  const id = clean(p.id ?? p.request_id, 128);
  const place = clean(p.state, 20) || "asked";
  if (place === "answered" || place === "expired") {
    if (!state.question || state.question.id === id) state.question = null;
    return;
  }
  const old = state.question?.id === id ? state.question : null;
  // Counted from when this page saw it become heard; unknown for one that was heard before the page came.
  const until = place !== "heard" ? null : old?.until ?? (now === null ? null : now + (count(p.window_ms) || SPOKEN_WINDOW_MS));
  state.question = {
    id, place, until,
    kind: clean(p.kind, 20) || "tool",
    text: clean(p.text, 1000) || old?.text || "",
    request: clean(p.request_id, 128) || id,
    version: count(p.version),
    screenOnly: p.screen_only === true || p.who === "screen",
    seenAt: old?.seenAt ?? now,
  };
}

function takeApproval(state, p) {
  const request = clean(p.request_id ?? p.id, 128);
  if (!request) return;
  state.approvals.set(request, {
    request, call: clean(p.call_id, 128), tool: clean(p.tool ?? p.tool_name, 120),
    args: clean(p.args ?? p.arguments, 400), reason: clean(p.reason, 500), screenOnly: p.screen_only === true,
  });
}

function takeTodo(state, items) {
  state.todo = list(items).slice(0, 40).map((i) => ({ content: clean(i?.content ?? i, 500), status: clean(i?.status, 20) || "pending" }));
}

function takeLine(state, p, seq, now) {
  const role = p.role === "user" ? "user" : "assistant";
  const item = clean(p.item_id, 128);
  const key = item || `seq-${seq ?? p.seq ?? ""}`;
  if (p.is_partial) {
    const text = clean(p.text);
    // A late partial of a line that is finished already says nothing new.
    if (item && state.lines.some((l) => l.key === key)) return;
    if (text) state.partials.set(role, { key: item || `partial-${role}`, role, text, partial: true, command: p.for_agent === false, until: now + PARTIAL_MAX_MS[role] });
    else state.partials.delete(role);
    return;
  }
  const partial = state.partials.get(role);
  if (partial && (partial.key === key || !item || partial.key === `partial-${role}`)) state.partials.delete(role);
  const surface = clean(p.surface ?? p.source, 20);
  const line = { key, role, text: clean(p.text), partial: false, surface, command: p.for_agent === false, cut: false };
  const at = state.lines.findIndex((l) => l.key === key);
  if (at >= 0) state.lines[at] = { ...line, cut: state.lines[at].cut };
  else state.lines.push(line);
  if (state.lines.length > LINES_MAX) state.lines.splice(0, state.lines.length - LINES_MAX);
}

// Of a speech that was stopped, the line says so.
function takeSpeech(state, p) {
  state.partials.delete("assistant");
  if (!(p.heard_ms > 0 && p.total_ms - p.heard_ms > 250)) return;
  const said = clean(p.text);
  const line = state.lines.findLast((l) => l.role === "assistant");
  if (line && said && (said.startsWith(line.text) || line.text.startsWith(said))) line.cut = true;
}

const REFUSED = /blocked|denied|refused|expired|withdrawn|screen_only|not_approved/;

function takeStart(state, p) {
  const call = clean(p.call_id ?? p.call, 128);
  state.trace.set(call, {
    call, tool: clean(p.tool ?? p.tool_name, 120), name: clean(p.display_name ?? p.display ?? p.tool, 120),
    args: clean(p.args_preview ?? p.args ?? p.arguments, 160), outcome: "running", code: "", reason: "", ms: null,
  });
  while (state.trace.size > TRACE_MAX) state.trace.delete(state.trace.keys().next().value);
}

function takeResult(state, p) {
  const call = clean(p.call_id ?? p.call, 128);
  if (!state.trace.has(call)) takeStart(state, p);
  const entry = state.trace.get(call);
  const code = clean(p.outcome_code, 60) || clean(p.error_code, 60);
  entry.code = code;
  entry.reason = clean(p.error, 240);
  entry.ms = Number.isFinite(p.latency_ms) ? p.latency_ms : null;
  entry.outcome = p.success ? "ok" : code === "pending_approval" ? "waiting" : REFUSED.test(code) ? "refused" : "failed";
}

// A call as a snapshot keeps it: with its end inside, or without one.
function takeTraced(state, p) {
  takeStart(state, p);
  if (typeof p.result?.success === "boolean") takeResult(state, { ...p.result, call_id: p.call_id });
}

// True for a call that waits for a person's yes.
export function waits(state, entry) {
  if (entry.outcome !== "running" && entry.outcome !== "waiting") return false;
  return [...state.approvals.values()].some((a) => (a.call ? a.call === entry.call : a.tool === entry.tool));
}

let noticeCount = 0;

export function addNotice(state, code, message) {
  const text = clean(message, 400) || clean(code, 80);
  if (!text || state.notices.some((n) => n.text === text)) return;
  state.notices.push({ key: ++noticeCount, code: clean(code, 80), text });
  while (state.notices.length > NOTICES_MAX) state.notices.shift();
}

// Drops what time alone ends. True when something went.
export function tidy(state, now) {
  let went = false;
  for (const [role, partial] of state.partials) {
    if (partial.until < now) went = state.partials.delete(role);
  }
  return went;
}
