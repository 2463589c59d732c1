// Sample rates: a streaming polyphase resampler with a Kaiser-windowed sinc. Used inside the audio worklet in both
// directions (the device's rate to 24 kHz and back). Pure: numbers in, numbers out.

const ZEROS = 16; // zero crossings on each side of the centre
const BETA = 8; // Kaiser: about 80 dB of stop band
const ROLL_OFF = 0.94; // part of the lower Nyquist frequency that passes

function gcd(a, b) { return b ? gcd(b, a % b) : a; }

// Modified Bessel function of the first kind, order 0.
function bessel0(x) {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > sum * 1e-9; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function sinc(x) { return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x); }

export class Resampler {
  // `from` and `to` in Hz, both whole numbers.
  constructor(from, to) {
    const common = gcd(from, to);
    this.up = to / common;
    this.down = from / common;
    this.same = from === to;
    const narrow = Math.min(1, to / from);
    this.half = Math.ceil(ZEROS / narrow);
    if (!this.same) this.phases = this.#filters(narrow * ROLL_OFF);
    this.reset();
  }

  reset() {
    this.held = new Float32Array(this.half - 1); // what the filter still looks back at
    this.at = this.half - 1; // index in `held` of the next output's centre
    this.phase = 0;
  }

  #filters(cutoff) {
    const taps = 2 * this.half;
    return Array.from({ length: this.up }, (_, phase) => {
      const filter = new Float32Array(taps);
      let sum = 0;
      for (let k = 0; k < taps; k++) {
        const u = k - this.half + 1 - phase / this.up;
        const edge = Math.abs(u) / this.half;
        filter[k] = edge < 1 ? sinc(cutoff * u) * bessel0(BETA * Math.sqrt(1 - edge * edge)) : 0;
        sum += filter[k];
      }
      return filter.map((c) => c / sum);
    });
  }

  // Float32Array at `from` Hz in, Float32Array at `to` Hz out. Keeps what it needs for the next call.
  process(input) {
    if (this.same) return input.slice();
    const all = new Float32Array(this.held.length + input.length);
    all.set(this.held);
    all.set(input, this.held.length);
    const out = new Float32Array(Math.ceil(((input.length + this.half) * this.up) / this.down) + 1);
    let n = 0;
    while (this.at + this.half < all.length) {
      const filter = this.phases[this.phase];
      const first = this.at - this.half + 1;
      let sum = 0;
      for (let k = 0; k < filter.length; k++) sum += filter[k] * all[first + k];
      out[n++] = sum;
      this.phase += this.down;
      this.at += Math.floor(this.phase / this.up);
      this.phase %= this.up;
    }
    const keep = Math.min(this.at - this.half + 1, all.length);
    this.held = all.slice(keep);
    this.at -= keep;
    return out.subarray(0, n);
  }

  // The last samples, pushed out with silence.
  flush() { return this.same ? new Float32Array(0) : this.process(new Float32Array(this.half)); }
}
