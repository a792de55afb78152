// A curve as sound: time goes from left to right, the pitch follows the value, two octaves from least to greatest.
const SECONDS = 2.5,
  LOW = 220,
  OCTAVES = 2,
  STEPS = 250;
/** @type {AudioContext | null} */
let playing = null;

/** @typedef {{ x: ArrayLike<number>, y: Float64Array | number[] }} Curve */

/** @param {Curve} curve */
export function hear({ x, y }) {
  silence();
  if (!x.length) return Promise.resolve();
  const context = new AudioContext(),
    tone = context.createOscillator(),
    volume = context.createGain();
  tone.frequency.setValueCurveAtTime(pitches({ x, y }), context.currentTime, SECONDS);
  volume.gain.setValueAtTime(0, context.currentTime);
  volume.gain.linearRampToValueAtTime(0.2, context.currentTime + 0.03);
  volume.gain.setValueAtTime(0.2, context.currentTime + SECONDS - 0.05);
  volume.gain.linearRampToValueAtTime(0, context.currentTime + SECONDS);
  tone.connect(volume).connect(context.destination);
  tone.start();
  tone.stop(context.currentTime + SECONDS);
  playing = context;
  return new Promise((/** @type {(ended?: unknown) => void} */ done) => {
    tone.onended = () => {
      if (playing === context) silence();
      done();
    };
  });
}

export function silence() {
  playing?.close();
  playing = null;
}

/**
 * Frequencies at even steps between the ends of x.
 * @param {Curve} curve
 */
export function pitches({ x, y }) {
  let least = Infinity,
    greatest = -Infinity;
  for (const value of y) {
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
  }
  const range = greatest - least || 1,
    width = x[x.length - 1] - x[0] || 1;
  let at = 0;
  return Float32Array.from({ length: STEPS }, (_, i) => {
    const wanted = x[0] + (i / (STEPS - 1)) * width;
    while (at < x.length - 1 && x[at + 1] <= wanted) at++;
    return LOW * 2 ** (OCTAVES * ((y[at] - least) / range));
  });
}
