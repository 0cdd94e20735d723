/**
 * Measures the error of voice activity: five flite voices say eight sentences each, clean and under white and babble
 * noise, and each frame's verdict is compared with the energy of the clean sound. Beside it the WebRTC detector alone
 * and energy over a floor alone, both without hangover. `node scripts/build.mjs && node bench/voice-activity.mjs`
 */
import createFvad from '@echogarden/fvad-wasm';
import { designLowpass } from '../dist/audio/kaiser-lowpass.js';
import { MULAW_SAMPLES } from '../dist/audio/kernel.js';
import { VoiceActivity } from '../dist/audio/voice-activity.js';
import {
  SENTENCES,
  VOICES,
  babble,
  compare,
  spokenCall,
  toInt16,
  whiteNoise,
  withNoise,
} from './spoken-call.mjs';
import { createRequire } from 'node:module';

const { mulaw } = createRequire(import.meta.url)('alawmulaw');
const fvad = await createFvad();
const speakers = { voices: VOICES, sentences: SENTENCES, designLowpass };

function ours() {
  const voice = new VoiceActivity();
  return (codes) => voice.push(codes);
}

function fvadAlone() {
  const {
    _malloc: allocate,
    _fvad_new: make,
    _fvad_set_mode: setMode,
    _fvad_set_sample_rate: setRate,
  } = fvad;
  const { _fvad_process: judge } = fvad;
  const frame = allocate(320);
  const detector = make();
  setMode(detector, 3);
  setRate(detector, 8_000);
  return (codes) => {
    codes.forEach((code, i) => {
      fvad.HEAP16[(frame >> 1) + i] = MULAW_SAMPLES[code];
    });
    return judge(detector, frame, 160) === 1;
  };
}

/** Four times (6 dB over) the least energy of the last 3 s. */
function energyAlone() {
  const recent = [];
  return (codes) => {
    const energy = codes.reduce((sum, code) => sum + MULAW_SAMPLES[code] ** 2, 0) / codes.length;
    recent.push(energy);
    if (recent.length > 150) recent.shift();
    return energy > Math.max(900, 4 * Math.min(...recent));
  };
}

const call = await spokenCall(speakers);
const noises = {
  white: whiteNoise(call.samples.length),
  babble: await babble({ ...speakers, count: call.samples.length }),
};
const conditions = [{ condition: 'clean', samples: call.samples }];
for (const [name, noise] of Object.entries(noises)) {
  for (const snrDb of [20, 15, 10, 5]) {
    conditions.push({ condition: `${name} ${snrDb} dB`, samples: withNoise({ call, noise, snrDb }) });
  }
}

const table = [];
for (const { condition, samples } of conditions) {
  const codes = mulaw.encode(toInt16(samples));
  const row = { condition };
  for (const [detector, make] of Object.entries({ ours, 'fvad mode 3': fvadAlone, energy: energyAlone })) {
    const judge = make();
    const verdicts = call.speech.map((_, frame) => judge(codes.subarray(160 * frame, 160 * (frame + 1))));
    const { recall, falseAlarms, endErrorMs } = compare(verdicts, call.speech);
    console.log(
      JSON.stringify({ bench: 'voice-activity', condition, detector, recall, falseAlarms, endErrorMs }),
    );
    const percent = (share) => `${(100 * share).toFixed(0)} %`;
    row[detector] = `${percent(recall)} / ${percent(falseAlarms)} / ${endErrorMs} ms`;
  }
  table.push(row);
}
const spokenShare = call.speech.filter(Boolean).length / call.speech.length;
console.log(
  `recall / false alarms / median error at the end of speech; ${(call.samples.length / 8_000).toFixed(0)} s, ` +
    `${(100 * spokenShare).toFixed(0)} % speech`,
);
console.table(table);
