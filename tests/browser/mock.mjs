// A small gateway for the page's own tests: serves the page's files with the product's content policy, trades the code for
// a key, keeps a numbered log and plays it to mirrors (`since` included), takes control messages, and speaks just enough of
// `/v1/realtime`. Not a part of the product. `node mock.mjs` alone serves the page with a scripted conversation to look at.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";

const PAGE = join(dirname(fileURLToPath(import.meta.url)), "../../src/server/page");
const KINDS = { html: "text/html; charset=utf-8", css: "text/css; charset=utf-8", js: "text/javascript; charset=utf-8", svg: "image/svg+xml" };
const FILES = ["index.html", "style.css", "app.js", "link.js", "mirror.js", "state.js", "view.js", "voice.js", "worklet.js", "resample.js", "tones.js", "icon.svg"];
const POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
const KEY = "vg_page_key_for_tests";

export class Mock {
  static async start({ session = "conv-7f3a21c9", base = {}, port = 0 } = {}) {
    const mock = new Mock();
    Object.assign(mock, { session, base, code: "ONCE-1", log: [], received: [], heard: [], sinceAsked: [], mirrors: new Set(), voices: new Set(), refuse: null, linkTries: 0, keyWorks: true });
    mock.server = createServer((request, response) => mock.#http(request, response));
    mock.sockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => [...offered][0] });
    mock.server.on("upgrade", (request, socket, head) => mock.#upgrade(request, socket, head));
    await mock.listen(port);
    return mock;
  }

  async listen(port) {
    await new Promise((done) => this.server.listen(port, "127.0.0.1", done));
    this.port = this.server.address().port;
    this.origin = `http://127.0.0.1:${this.port}`;
  }

  get link() { return `${this.origin}/#code=${this.code}`; }

  async stop() {
    for (const socket of this.sockets.clients) socket.terminate();
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  async #http(request, response) {
    const path = new URL(request.url, this.origin).pathname;
    const answer = (status, body, type = "application/json") => {
      response.writeHead(status, { "content-type": type, "content-security-policy": POLICY, "x-content-type-options": "nosniff" });
      response.end(body);
    };
    if (path === "/api/link" && request.method === "POST") {
      this.linkTries += 1;
      let text = "";
      for await (const part of request) text += part;
      const right = this.code && JSON.parse(text).code === this.code;
      if (right) this.code = null;
      return right ? answer(200, JSON.stringify({ token: KEY })) : answer(401, JSON.stringify({ error: { code: "bad_code" } }));
    }
    if (path.startsWith("/v1/sessions")) {
      if (!this.keyWorks || request.headers.authorization !== `Bearer ${KEY}`) return answer(401, "{}");
      return answer(path === "/v1/sessions" || path.endsWith(`/${this.session}`) ? 200 : 404, "{}");
    }
    const name = path === "/" ? "index.html" : path.slice(1);
    if (!FILES.includes(name)) return answer(404, "{}");
    answer(200, await readFile(join(PAGE, name)), KINDS[name.split(".").pop()]);
  }

  #upgrade(request, socket, head) {
    const url = new URL(request.url, this.origin);
    const offered = (request.headers["sec-websocket-protocol"] ?? "").split(",").map((p) => p.trim());
    const voice = url.pathname === "/v1/realtime";
    const mirror = url.pathname.match(/^\/v1\/sessions\/([^/]+)\/events$/);
    const wanted = voice ? "realtime" : "voxgate.events";
    const status = this.refuse ?? (!voice && !mirror ? 404 : offered[0] !== wanted || offered[1] !== `openai-insecure-api-key.${KEY}` || !this.keyWorks ? 401 : 101);
    if (status !== 101) return socket.end(`HTTP/1.1 ${status} No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
    this.sockets.handleUpgrade(request, socket, head, (ws) => (voice ? this.#voice(ws, url) : this.#mirror(ws, url)));
  }

  // ---- the mirror

  #envelope(type, payload, seq) {
    return { msg_id: crypto.randomUUID(), session_id: this.session, timestamp_ms: Date.now(), hop: "brain", type, payload, ...(seq ? { seq } : {}) };
  }

  #mirror(ws, url) {
    const since = url.searchParams.has("since") ? Number(url.searchParams.get("since")) : null;
    this.sinceAsked.push(since);
    const kept = since !== null && !this.forgets;
    const state = { seq: this.log.length, resumed: kept, ...snapshotOf(this.base, this.log) };
    ws.send(JSON.stringify(this.#envelope("snapshot", state)));
    if (kept) for (const frame of this.log.slice(since)) ws.send(JSON.stringify(frame));
    this.mirrors.add(ws);
    ws.on("close", () => this.mirrors.delete(ws));
    ws.on("message", (data) => this.#told(ws, JSON.parse(data)));
  }

  #told(ws, message) {
    this.received.push(message);
    const verdict = this.onControl?.(message) ?? { ok: true };
    if (verdict === "silent") return;
    ws.send(JSON.stringify(this.#envelope("ack", { msg_id: message.msg_id, ...verdict })));
  }

  // A numbered frame, to all mirrors and the log.
  send(type, payload) {
    const frame = this.#envelope(type, payload, this.log.length + 1);
    this.log.push(frame);
    for (const ws of this.mirrors) ws.send(JSON.stringify(frame));
    return frame.seq;
  }

  // A frame that passes: no number, not logged.
  pass(type, payload) { for (const ws of this.mirrors) ws.send(JSON.stringify(this.#envelope(type, payload))); }

  // The very same text once more, as a confused server would.
  repeat(seq) { for (const ws of this.mirrors) ws.send(JSON.stringify(this.log[seq - 1])); }

  dropMirrors() { for (const ws of this.mirrors) ws.terminate(); }

  // Waits until a control message that fits has come.
  async told(fits, ms = 4000) {
    const until = Date.now() + ms;
    for (;;) {
      const found = this.received.find(fits);
      if (found) return found;
      if (Date.now() > until) throw new Error(`no such control message; got ${JSON.stringify(this.received)}`);
      await new Promise((r) => setTimeout(r, 20));
    }
  }

  // ---- the voice

  #voice(ws, url) {
    this.voices.add(ws);
    this.conversationAsked = url.searchParams.get("conversation");
    ws.on("close", () => this.voices.delete(ws));
    ws.on("message", (data) => {
      const event = JSON.parse(data);
      this.heard.push(event);
    });
    this.speak({ type: "session.created", session: { id: this.session, type: "realtime" } });
  }

  speak(event) { for (const ws of this.voices) ws.send(JSON.stringify({ event_id: crypto.randomUUID(), ...event })); }

  // `seconds` of a sine of 440 Hz as audio deltas of `item`, sent at once.
  speakTone(item, seconds) {
    const samples = new Int16Array(2400);
    for (let chunk = 0; chunk < seconds * 10; chunk++) {
      for (let i = 0; i < 2400; i++) samples[i] = 6000 * Math.sin((2 * Math.PI * 440 * (chunk * 2400 + i)) / 24000);
      const delta = Buffer.from(samples.buffer).toString("base64");
      this.speak({ type: "response.output_audio.delta", response_id: "r", item_id: item, output_index: 0, content_index: 0, delta });
    }
    this.speak({ type: "response.output_audio.done", response_id: "r", item_id: item, output_index: 0, content_index: 0 });
  }
}

// A snapshot good enough for the page's tests: a base state and the frames that replace parts of it.
function snapshotOf(base, log) {
  const state = { plan_mode: false, modes: { shown: "default" }, draining: 0, plans: [], draft: [], question: null, approvals: [], todo: [], transcript: [], trace: [], voice_state: "idle", ...base };
  for (const { type, payload, seq } of log) {
    if (type === "plan_mode") Object.assign(state, { plan_mode: payload.plan_mode, draining: payload.draining ?? 0, restored: payload.restored });
    if (type === "transcript") state.transcript = [...state.transcript, { ...payload, seq }];
    if (type === "plan_review") state.plans = [...state.plans.filter((p) => p.version !== payload.version), payload];
    if (type === "todo_update") state.todo = payload.todos;
    if (type === "question") state.question = ["answered", "expired"].includes(payload.state) ? null : payload;
    if (type === "approval_request") state.approvals = [...state.approvals, payload];
    if (type === "approval_resolved") state.approvals = state.approvals.filter((a) => a.request_id !== payload.request_id);
    if (type === "voice_state") state.voice_state = payload.state;
  }
  return state;
}

// ---- scenes to look at

const line = (mock, role, text, more = {}) => mock.send("transcript", { role, text, is_partial: false, item_id: `item_${mock.log.length + 1}`, surface: role === "user" ? "voice" : "voice", for_agent: true, ...more });
const call = (mock, id, tool, display_name, args, result) => {
  mock.send("tool_start", { tool, call_id: id, display_name, args_preview: JSON.stringify(args) });
  if (result) mock.send("tool_result", { tool, call_id: id, error: "", error_code: "", latency_ms: 12, ...result });
};

export const SCENES = {
  empty() {},
  listening(mock) {
    mock.send("voice_state", { state: "listening" });
    line(mock, "user", "What's in my notes?");
    call(mock, "c1", "notes__list", "List notes", {}, { success: true, latency_ms: 4 });
    line(mock, "assistant", "You have two notes: buy milk, and call the dentist.");
    line(mock, "user", "Add buy bread to my notes.");
    call(mock, "c2", "notes__add", "Add a note", { text: "buy bread" }, { success: true, latency_ms: 9 });
    line(mock, "user", "Yes, go ahead.", { for_agent: false });
    line(mock, "assistant", "Added buy bread to your notes.");
    mock.pass("transcript", { role: "user", text: "What time is", is_partial: true, item_id: "item_next" });
  },
  plan(mock) {
    SCENES.listening(mock);
    line(mock, "user", "Enter plan mode.", { for_agent: false });
    mock.send("plan_mode", { plan_mode: true, draining: 0, restored: false, reason: "", modes: { shown: "plan" } });
    line(mock, "assistant", "Plan mode is on. I will look and propose, and change nothing.", { for_agent: false });
    line(mock, "user", "Add buy eggs to my notes.");
    call(mock, "c3", "notes__add", "Add a note", { text: "buy eggs" }, { success: false, error_code: "plan_mode_blocked", error: "Plan mode is on, so nothing was changed. It is a step of the plan now." });
    line(mock, "assistant", "That waits in the plan: add buy eggs to your notes.");
    line(mock, "user", "/plan status", { for_agent: false, surface: "chat" });
    mock.send("todo_update", { todos: [{ id: "1", content: "Look at the notes", status: "completed" }, { id: "2", content: "Write the plan", status: "in_progress" }, { id: "3", content: "Add what is missing", status: "pending" }] });
    mock.send("plan_review", { version: 1, hash: "9f31c2d4a7b80e55", title: "Bring the shopping notes up to date.", status: "waiting", approve: "approve", steps: [{ index: 1, title: "Add buy eggs to your notes", detail: "", tools: ["notes__add"] }, { index: 2, title: "Delete the note about milk", detail: "It goes to the trash folder and can be taken back.", tools: ["notes__delete"] }] });
    line(mock, "assistant", "Plan one: bring the shopping notes up to date. Step one, add buy eggs to your notes. Step two, delete the note about milk.");
  },
  draining(mock) {
    SCENES.listening(mock);
    mock.send("tool_start", { tool: "files__copy", call_id: "c9", display_name: "Copy a folder", args_preview: '{"from":"photos"}' });
    mock.send("plan_mode", { plan_mode: true, draining: 1, restored: true, reason: "", modes: { shown: "plan" } });
    mock.send("notice", { code: "restored", message: "Plan mode was on when voxgate stopped, so it is on again." });
  },
  question(mock) {
    SCENES.plan(mock);
    mock.send("plan_review", { version: 1, status: "approved" });
    mock.send("plan_mode", { plan_mode: false, approved: true, draining: 0, modes: { shown: "default" } });
    mock.send("tool_start", { tool: "notes__add", call_id: "c4", display_name: "Add a note", args_preview: '{"text":"buy eggs"}' });
    mock.send("approval_request", { request_id: "q1", call_id: "c4", tool: "notes__add", args: { text: "buy eggs" }, permission_tier: "confirm", reason: "Add buy eggs to your notes?" });
    mock.send("question", { id: "q1", kind: "tool", text: "Add buy eggs to your notes?", request_id: "q1", state: "asked" });
    mock.send("question", { id: "q1", kind: "tool", text: "Add buy eggs to your notes?", request_id: "q1", state: "heard" });
  },
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const mock = await Mock.start({ port: Number(process.env.PORT ?? 0) });
  SCENES[process.argv[2] ?? "plan"]?.(mock);
  console.log(mock.link);
}
