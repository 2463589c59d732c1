// The voice of the page: microphone, loudspeaker and the `/v1/realtime` socket between them (OpenAI Realtime, GA names).
// Owns the sound graph and says in one word what the microphone does. Draws nothing; words and plans come by the mirror.

const WIRE_HZ = 24000;
const EARLY_MAX = 150; // frames of 20 ms kept while the socket is not ready yet: 3 s
const BACKLOG_MAX = 1 << 20; // bytes waiting in the socket; beyond it frames are dropped and counted
const SILENT_FRAMES = 300; // 6 s of nothing but zeros: the microphone is off somewhere
const CUT_MAX = 64; // items whose late audio is ignored
const RETRIES = 6;

function base64(buffer) { return btoa(String.fromCharCode(...new Uint8Array(buffer))); }

function bytes(text) {
  const raw = atob(text);
  const out = new Uint8Array(raw.length & ~1);
  for (let i = 0; i < out.length; i++) out[i] = raw.charCodeAt(i);
  return out.buffer;
}

const MICROPHONE_WORDS = {
  NotAllowedError: "The browser does not let this page use the microphone. Allow it next to the address bar, then press again.",
  NotFoundError: "No microphone was found. Plug one in, or type below.",
  NotReadableError: "The microphone is there but gives no sound; another program may hold it.",
};

export class Voice {
  // `on`: {change(), notice(code, message)}; `where()` answers {token, conversation}.
  constructor({ where, on }) {
    Object.assign(this, { where, on, wanted: false, muted: false, holding: false, socket: null, ready: false, tries: 0 });
    this.reset();
  }

  reset() {
    Object.assign(this, { problem: "", heard: false, playing: false, level: 0, zeros: 0, early: [], dropped: 0, starting: false });
    this.cut = new Set();
    this.current = null; // item that is being received
  }

  // One word for the screen. `gateway` is the conversation's own voice state.
  state(gateway) {
    if (this.problem && !this.wanted) return "failed";
    if (!this.wanted) return "off";
    if (this.problem || (gateway === "error" && this.ready)) return "deaf";
    if (this.starting || !this.ready) return "starting";
    if (this.playing) return "speaking";
    if (this.muted && !this.holding) return "muted";
    if (this.heard) return "hearing";
    if (gateway === "processing") return "thinking";
    return "listening";
  }

  get open() { return this.ready; }

  async start({ muted = false } = {}) {
    if (this.wanted) return;
    this.reset();
    Object.assign(this, { wanted: true, starting: true, muted, tries: 0 });
    this.on.change();
    try {
      await this.#graph();
      if (!this.wanted) return this.#release();
      this.#dial();
    } catch (error) {
      this.problem = MICROPHONE_WORDS[error.name] ?? `The microphone could not be opened (${error.name || "unknown error"}).`;
      this.wanted = false;
      this.holding = false;
      this.#release();
    }
    this.starting = false;
    this.on.change();
  }

  stop() {
    this.wanted = false;
    this.holding = false;
    this.ready = false;
    clearTimeout(this.timer);
    this.socket?.close();
    this.socket = null;
    this.#release();
    this.reset();
    this.on.change();
  }

  mute(on) {
    this.muted = on;
    this.#gateTrack();
    this.on.change();
  }

  // Held down: the microphone is open for as long as it lasts, whatever it was before.
  hold(on) {
    if (this.holding === on) return;
    this.holding = on;
    if (on && !this.wanted) this.start({ muted: true });
    this.#gateTrack();
    this.on.change();
  }

  #gateTrack() {
    const track = this.stream?.getAudioTracks()[0];
    if (track) track.enabled = !this.muted || this.holding;
    this.zeros = 0;
  }

  async #graph() {
    if (!navigator.mediaDevices?.getUserMedia) throw Object.assign(new Error(), { name: "no microphone for pages that are neither on this machine nor https" });
    this.context = new AudioContext({ latencyHint: "interactive" });
    this.context.resume();
    const loaded = this.context.audioWorklet.addModule("worklet.js");
    const asked = navigator.mediaDevices.getUserMedia({
      audio: { echoCancellation: true, autoGainControl: true, noiseSuppression: false, channelCount: 1 },
    });
    [this.stream] = await Promise.all([asked, loaded]);
    const track = this.stream.getAudioTracks()[0];
    track.onended = () => this.#fail("The microphone was unplugged or taken away. Press to try again.");
    track.onmute = () => this.#deaf("The system has muted the microphone.");
    track.onunmute = () => this.#deaf("");
    this.#gateTrack();
    const capture = new AudioWorkletNode(this.context, "voxgate-capture", { numberOfInputs: 1, numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
    capture.port.onmessage = (event) => this.#captured(event.data);
    new MediaStreamAudioSourceNode(this.context, { mediaStream: this.stream }).connect(capture);
    this.player = new AudioWorkletNode(this.context, "voxgate-player", { numberOfInputs: 0, numberOfOutputs: 1, outputChannelCount: [1] });
    this.player.port.onmessage = (event) => this.#played(event.data);
    this.player.connect(this.context.destination);
  }

  #release() {
    this.stream?.getTracks().forEach((track) => { track.onended = null; track.stop(); });
    this.context?.close();
    this.stream = this.context = this.player = null;
  }

  #fail(words) {
    this.stop();
    this.problem = words;
    this.on.change();
  }

  #deaf(words) {
    if (!this.wanted || this.problem === words) return;
    this.problem = words;
    this.on.change();
  }

  // ---- microphone to socket

  #captured({ pcm, rms, peak }) {
    this.level = rms;
    const open = !this.muted || this.holding;
    this.zeros = peak === 0 && open ? this.zeros + 1 : 0;
    if (this.zeros === SILENT_FRAMES) this.#deaf("The microphone gives nothing but silence. Is it switched off, or the wrong one?");
    if (peak > 0 && open && this.problem) this.#deaf("");
    if (!this.ready) {
      this.early.push(pcm);
      if (this.early.length > EARLY_MAX) this.early.shift();
      return;
    }
    this.#append(pcm);
  }

  #append(pcm) {
    if (this.socket.bufferedAmount > BACKLOG_MAX) {
      if (this.dropped++ === 0) this.on.notice("audio_dropped", "The connection is too slow for the microphone; some sound was left out.");
      return;
    }
    this.#send({ type: "input_audio_buffer.append", audio: base64(pcm) });
  }

  #send(message) { if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message)); }

  // ---- socket

  #dial() {
    const { token, conversation } = this.where();
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const url = `${scheme}://${location.host}/v1/realtime?conversation=${encodeURIComponent(conversation)}`;
    const socket = new WebSocket(url, ["realtime", `openai-insecure-api-key.${token}`]);
    this.socket = socket;
    socket.onmessage = (event) => { if (this.socket === socket) this.#hear(event.data); };
    socket.onclose = (event) => { if (this.socket === socket) this.#closed(event); };
  }

  #closed(event) {
    this.ready = false;
    this.heard = false;
    this.flush();
    if (!this.wanted) return;
    if (this.tries >= RETRIES || event.code === 1008) {
      return this.#fail(this.refusal || event.reason || "The voice connection was refused or lost. Press to try again.");
    }
    this.timer = setTimeout(() => { if (this.wanted) this.#dial(); }, 400 * 2 ** this.tries++);
    this.on.change();
  }

  #hear(text) {
    let event;
    try { event = JSON.parse(text); } catch { return; }
    const handler = this.#handlers[event?.type];
    if (handler) handler(event);
  }

  #handlers = {
    "session.created": () => this.#created(),
    "input_audio_buffer.speech_started": () => { this.heard = true; this.flush(); this.on.change(); },
    "input_audio_buffer.speech_stopped": () => { this.heard = false; this.on.change(); },
    "response.output_audio.delta": (e) => this.#delta(e),
    "response.output_audio.done": (e) => this.player?.port.postMessage({ end: e.item_id }),
    "response.done": (e) => { if (e.response?.status === "cancelled") this.flush(); },
    error: (e) => this.#error(e.error ?? {}),
  };

  #created() {
    const format = { type: "audio/pcm", rate: WIRE_HZ };
    this.#send({
      type: "session.update",
      session: { type: "realtime", output_modalities: ["audio"], audio: { input: { format, turn_detection: { type: "server_vad" } }, output: { format } } },
    });
    Object.assign(this, { ready: true, tries: 0, refusal: "" });
    const early = this.early;
    this.early = [];
    for (const pcm of early) this.#append(pcm);
    this.on.change();
  }

  #error({ code, message }) {
    if (code === "response_cancel_not_active") return;
    if (!this.ready) this.refusal = message;
    this.on.notice(code || "realtime_error", message || "The voice connection reported an error.");
  }

  // ---- socket to loudspeaker

  #delta({ item_id, delta }) {
    if (!this.player || this.cut.has(item_id) || typeof delta !== "string") return;
    const pcm = bytes(delta);
    if (pcm.byteLength === 0) return;
    this.current = item_id;
    this.player.port.postMessage({ item: item_id, pcm }, [pcm]);
  }

  #played(message) {
    if ("active" in message && message.active !== this.playing) {
      this.playing = message.active;
      this.on.change();
    }
    if (message.cleared) this.#truncate(message.cleared);
  }

  // Stops what is being played. The player answers with what was really heard of each item.
  flush() {
    if (this.current) this.#cutOff(this.current);
    this.current = null;
    this.player?.port.postMessage({ clear: true });
  }

  #cutOff(item) {
    this.cut.add(item);
    if (this.cut.size > CUT_MAX) this.cut.delete(this.cut.values().next().value);
  }

  #truncate(items) {
    const delayMs = 1000 * (this.context?.outputLatency || this.context?.baseLatency || 0);
    for (const { item, playedMs, totalMs } of items) {
      this.#cutOff(item);
      const heard = Math.max(0, Math.min(Math.floor(playedMs - delayMs), Math.floor(totalMs)));
      this.#send({ type: "conversation.item.truncate", item_id: item, content_index: 0, audio_end_ms: heard });
    }
  }
}
