// Sound on the audio thread: `voxgate-capture` makes 20 ms frames of 24 kHz PCM16 from the microphone, `voxgate-player`
// plays 24 kHz PCM16 without gaps and counts, per item, what the device was given. Both resample here.

import { Resampler } from "./resample.js";

const WIRE_HZ = 24000;
const FRAME = 480; // samples, 20 ms at 24 kHz
const PREBUFFER_S = 0.08; // held back when a queue begins, so that a late packet makes no gap
const QUEUE_MAX_S = 120; // more than this is dropped, oldest first

function toPcm16(sample) {
  const s = Math.max(-1, Math.min(1, sample));
  return Math.round(s < 0 ? s * 0x8000 : s * 0x7fff);
}

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.resampler = new Resampler(sampleRate, WIRE_HZ);
    this.frame = new Int16Array(FRAME);
    this.filled = 0;
    this.sum = 0;
    this.peak = 0;
  }

  process(inputs) {
    const channels = inputs[0];
    if (!channels || channels.length === 0) return true;
    for (const sample of this.resampler.process(channels[0])) this.#take(sample);
    return true;
  }

  #take(sample) {
    const value = toPcm16(sample);
    this.frame[this.filled++] = value;
    this.sum += value * value;
    this.peak = Math.max(this.peak, Math.abs(value));
    if (this.filled < FRAME) return;
    const rms = Math.sqrt(this.sum / FRAME) / 0x8000;
    const pcm = this.frame.slice().buffer;
    this.port.postMessage({ pcm, rms, peak: this.peak }, [pcm]);
    this.filled = 0;
    this.sum = 0;
    this.peak = 0;
  }
}

class Player extends AudioWorkletProcessor {
  constructor() {
    super();
    this.resampler = new Resampler(WIRE_HZ, sampleRate);
    this.queue = []; // {item, samples}
    this.offset = 0; // into the first entry
    this.queued = 0; // samples waiting
    this.items = new Map(); // item -> {played, total} in device samples
    this.running = false;
    this.closed = true; // no more is coming for now
    this.last = 0; // last sample given out, faded from when playback is cut
    this.port.onmessage = (event) => this.#hear(event.data);
  }

  #hear(message) {
    if (message.pcm) {
      this.closed = false;
      this.#push(message.item, this.resampler.process(fromPcm16(message.pcm)));
    }
    if (message.end) {
      this.closed = true;
      this.#push(message.end, this.resampler.flush());
      this.resampler.reset();
      if (this.queue.length === 0) this.items.clear();
    }
    if (message.clear) this.#clear();
  }

  #push(item, samples) {
    if (samples.length === 0) return;
    this.queue.push({ item, samples });
    this.queued += samples.length;
    const count = this.items.get(item) || { played: 0, total: 0 };
    count.total += samples.length;
    this.items.set(item, count);
    while (this.queued > QUEUE_MAX_S * sampleRate && this.queue.length > 1) {
      this.queued -= this.queue.shift().samples.length - this.offset;
      this.offset = 0;
    }
  }

  #clear() {
    const inMs = (n) => (n / sampleRate) * 1000;
    const cut = [];
    for (const [item, { played, total }] of this.items) {
      if (played < total) cut.push({ item, playedMs: inMs(played), totalMs: inMs(total) });
    }
    this.queue = [];
    this.offset = 0;
    this.queued = 0;
    this.items.clear();
    this.resampler.reset();
    this.#run(false);
    this.port.postMessage({ cleared: cut });
  }

  #run(on) {
    if (this.running === on) return;
    this.running = on;
    this.port.postMessage({ active: on });
  }

  process(_inputs, outputs) {
    const out = outputs[0][0];
    const ready = this.queued >= PREBUFFER_S * sampleRate || (this.closed && this.queued > 0);
    if (ready) this.#run(true);
    let n = 0;
    while (this.running && n < out.length && this.queue.length > 0) n = this.#fill(out, n);
    for (; n < out.length; n++) {
      this.last *= 0.98; // a few milliseconds from the last sample to silence, so that a cut does not click
      out[n] = Math.abs(this.last) > 1e-4 ? this.last : 0;
    }
    for (let c = 1; c < outputs[0].length; c++) outputs[0][c].set(out);
    if (this.running && this.queue.length === 0) this.#run(false);
    return true;
  }

  #fill(out, n) {
    const { item, samples } = this.queue[0];
    const take = Math.min(out.length - n, samples.length - this.offset);
    out.set(samples.subarray(this.offset, this.offset + take), n);
    this.last = samples[this.offset + take - 1];
    this.offset += take;
    this.queued -= take;
    const count = this.items.get(item);
    if (count) count.played += take;
    if (this.offset === samples.length) {
      this.queue.shift();
      this.offset = 0;
      if (this.queue.length === 0 && this.closed) this.items.clear();
    }
    return n + take;
  }
}

function fromPcm16(buffer) {
  const ints = new Int16Array(buffer);
  const floats = new Float32Array(ints.length);
  for (let i = 0; i < ints.length; i++) floats[i] = ints[i] / 0x8000;
  return floats;
}

registerProcessor("voxgate-capture", Capture);
registerProcessor("voxgate-player", Player);
