// Small tones for those who do not look: the mode turned, a call was refused. Quiet, and silent until the person has touched the page.

const PLAN_ON = [[392, 0], [523, 0.12]];
const PLAN_OFF = [[523, 0], [392, 0.12]];
const REFUSED = [[196, 0], [185, 0.1]];
const PEAK = 0.05; // about -26 dBFS
const CHOICE = "voxgate.tones";

let context = null;

// "on", "off" or "auto": on unless a voice connection brings its own tones.
export const choice = () => localStorage.getItem(CHOICE) ?? "auto";
export const choose = (word) => localStorage.setItem(CHOICE, word);

export function wanted(voiceIsUp) { return choice() === "on" || (choice() === "auto" && !voiceIsUp); }

function play(notes) {
  if (!navigator.userActivation?.hasBeenActive) return;
  context ??= new AudioContext();
  context.resume();
  for (const [hz, after] of notes) {
    const from = context.currentTime + 0.02 + after;
    const gain = new GainNode(context, { gain: 0 });
    const tone = new OscillatorNode(context, { type: "sine", frequency: hz });
    gain.gain.setValueAtTime(0, from);
    gain.gain.linearRampToValueAtTime(PEAK, from + 0.015);
    gain.gain.exponentialRampToValueAtTime(0.0005, from + 0.16);
    tone.connect(gain).connect(context.destination);
    tone.start(from);
    tone.stop(from + 0.18);
  }
}

export const planOn = () => play(PLAN_ON);
export const planOff = () => play(PLAN_OFF);
export const refused = () => play(REFUSED);
