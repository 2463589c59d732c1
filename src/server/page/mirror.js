// The mirror socket: numbered frames in, control messages out. Comes back by itself after a drop and goes on after the
// last number it has seen, so that nothing is missed and nothing counted twice. Knows nothing of what frames mean.

const WAIT_MIN_MS = 400;
const WAIT_MAX_MS = 10000;
const ACK_MS = 10000;

export class Mirror {
  // `on`: {snapshot(payload, session), frame(frame), state(word, retryInMs), gone(why)}
  constructor({ token, id, on }) {
    Object.assign(this, { token, id, on, seq: null, whole: false, tries: 0, socket: null, timer: 0 });
    this.acks = new Map();
    this.closed = false;
    addEventListener("online", () => this.#retryNow());
  }

  get ready() { return this.socket?.readyState === WebSocket.OPEN && this.greeted; }

  open() {
    clearTimeout(this.timer);
    this.greeted = false;
    this.on.state("connecting");
    const since = this.seq === null || this.whole ? "" : `?since=${this.seq}`;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const url = `${scheme}://${location.host}/v1/sessions/${encodeURIComponent(this.id)}/events${since}`;
    const socket = new WebSocket(url, ["voxgate.events", `openai-insecure-api-key.${this.token}`]);
    this.socket = socket;
    socket.onmessage = (event) => { if (this.socket === socket) this.#hear(event.data); };
    socket.onclose = () => { if (this.socket === socket) this.#dropped(); };
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  #hear(text) {
    let frame;
    try { frame = JSON.parse(text); } catch { return; }
    if (!frame || typeof frame.type !== "string") return;
    if (frame.type === "snapshot") return this.#greet(frame);
    if (frame.type === "ack") return this.#acknowledged(frame.payload ?? frame);
    if (typeof frame.seq === "number") {
      if (this.seq !== null && frame.seq <= this.seq) return;
      if (this.seq !== null && frame.seq > this.seq + 1) return this.#gap();
      this.seq = frame.seq;
    }
    this.on.frame(frame);
  }

  // A resumed snapshot is followed by every frame after `since`; any other one is the new beginning.
  #greet(frame) {
    const payload = frame.payload ?? frame;
    const session = frame.session_id ?? payload.session_id ?? this.id;
    const resumed = payload.resumed === true && this.seq !== null && session === this.id && !this.whole;
    this.id = session;
    this.greeted = true;
    this.tries = 0;
    this.whole = false;
    if (!resumed) {
      this.seq = payload.seq ?? frame.seq ?? 0;
      this.on.snapshot(payload, session);
    }
    this.on.state("open");
  }

  // Something is missing: ask for everything anew rather than draw a wrong state.
  #gap() {
    this.whole = true;
    this.socket.close();
  }

  #acknowledged(payload) {
    const waiting = this.acks.get(payload.msg_id);
    if (!waiting) return;
    this.acks.delete(payload.msg_id);
    clearTimeout(waiting.timer);
    waiting.done({ ok: payload.ok === true, code: payload.code ?? "", message: payload.message ?? "" });
  }

  // Sends a control message; answers {ok, code, message}, always.
  send(type, payload) {
    if (!this.ready) return Promise.resolve({ ok: false, code: "offline", message: "Not connected, so nothing was sent." });
    const msg_id = crypto.randomUUID();
    this.socket.send(JSON.stringify({ msg_id, session_id: this.id, timestamp_ms: Date.now(), hop: "client", type, payload }));
    return new Promise((done) => {
      const timer = setTimeout(() => {
        this.acks.delete(msg_id);
        done({ ok: false, code: "no_answer", message: "voxgate has not answered. It may or may not have taken that." });
      }, ACK_MS);
      this.acks.set(msg_id, { done, timer });
    });
  }

  async #dropped() {
    const greeted = this.greeted;
    this.greeted = false;
    for (const { done, timer } of this.acks.values()) {
      clearTimeout(timer);
      done({ ok: false, code: "dropped", message: "The connection dropped before voxgate answered. It may or may not have taken that." });
    }
    this.acks.clear();
    if (this.closed) return;
    const why = greeted ? "dropped" : await this.#diagnose();
    if (this.closed || this.greeted) return;
    if (why === "key" || why === "missing") return this.on.gone(why);
    const wait = Math.min(WAIT_MAX_MS, WAIT_MIN_MS * 2 ** this.tries++) * (0.8 + Math.random() * 0.4);
    this.on.state(why === "unreachable" ? "unreachable" : "dropped", wait);
    this.timer = setTimeout(() => this.open(), wait);
  }

  #retryNow() {
    if (this.closed || this.socket?.readyState !== WebSocket.CLOSED) return;
    this.tries = 0;
    this.open();
  }

  // A browser does not tell why a socket was refused; a plain request does.
  async #diagnose() {
    const path = this.id === "last" ? "/v1/sessions" : `/v1/sessions/${encodeURIComponent(this.id)}`;
    try {
      const answer = await fetch(path, { headers: { authorization: `Bearer ${this.token}` } });
      if (answer.status === 401) return "key";
      if (answer.status === 404 && this.id !== "last") return "missing";
      return "dropped";
    } catch {
      return "unreachable";
    }
  }
}
