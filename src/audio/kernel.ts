/**
 * The one kernel instance of this thread: loads the committed `kernel.wasm`, fills its mu-law tables from alawmulaw and
 * its filter tables from the designs below, and hands out slots, the few bytes of state that a filter keeps between
 * two pushes. The filters of all calls share its scratch areas, which works because each push runs to its end before
 * the next begins; their results are views on it. `caller-upsampler.ts` and `agent-decimator.ts` are the users.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { MULAW_SILENCE } from '../limits.js';
import { designLowpass } from './kaiser-lowpass.js';

/** The package is CommonJS in a bundle whose names Node cannot see, so `import { mulaw }` would fail. */
const { mulaw } = createRequire(import.meta.url)('alawmulaw') as typeof import('alawmulaw');

/** The 16-bit sample of each mu-law code, as the library has it. */
export const MULAW_SAMPLES: Readonly<Int16Array> = Int16Array.from({ length: 256 }, (_, code) =>
  mulaw.decodeSample(code),
);

/**
 * 8 to 16 kHz. The cut at half the input's band makes this a half-band filter: every second tap but the middle one is
 * zero, so half of the output is the input itself, late, and the other half costs 32 taps. The pass band must reach
 * 3400 Hz; the image of 3400 Hz lies at 8000 - 3400 = 4600 Hz: a transition of 1200 Hz round the cut, in which 63
 * taps reach 7.95 + 14.36 * 62 * 1200 / 16000 = 74.7 dB, which is beta 7. Delay 31 / 16 kHz = 1.94 ms.
 */
const UP_DESIGN = { taps: 63, sampleRateHz: 16_000, cutoffHz: 4_000, beta: 7 };

/**
 * 24 to 8 kHz. 3400 Hz must pass and 4600 Hz, which would fold to 3400 Hz, must not. 96 taps of beta 7 (72 dB) have a
 * transition of (72 - 7.95) / (14.36 * 95) * 24000 = 1127 Hz: from 3340 to 4460 Hz round a cut of 3900 Hz, where the
 * lower end is already within 0.1 dB. Delay 47.5 / 24 kHz = 1.98 ms.
 */
const DOWN_DESIGN = { taps: 96, sampleRateHz: 24_000, cutoffHz: 3_900, beta: 7 };

const WASM_PAGE_BYTES = 65_536;

/** What `kernel.as.ts` exports: functions, and the places and sizes of its tables, scratch areas and slots. */
interface KernelExports {
  readonly memory: WebAssembly.Memory;
  upsample(slot: number, sampleCount: number): void;
  decimate(slot: number, byteCount: number): number;
  encode(sampleCount: number): void;
  readonly UP_BLOCK_MAX: WebAssembly.Global;
  readonly DOWN_BLOCK_MAX: WebAssembly.Global;
  readonly UP_SLOT_BYTES: WebAssembly.Global;
  readonly DOWN_SLOT_BYTES: WebAssembly.Global;
  readonly DECODE_TABLE: WebAssembly.Global;
  readonly ENCODE_TABLE: WebAssembly.Global;
  readonly UP_TAPS_TABLE: WebAssembly.Global;
  readonly DOWN_OUTER_TABLE: WebAssembly.Global;
  readonly DOWN_MIDDLE_TABLE: WebAssembly.Global;
  readonly INPUT: WebAssembly.Global;
  readonly PCM_OUTPUT: WebAssembly.Global;
  readonly MULAW_OUTPUT: WebAssembly.Global;
  readonly SLOTS: WebAssembly.Global;
}

function instantiate(): KernelExports {
  const wasm = readFileSync(new URL('./kernel.wasm', import.meta.url));
  return new WebAssembly.Instance(new WebAssembly.Module(wasm)).exports as KernelExports;
}

class Kernel {
  readonly #wasm = instantiate();
  /** Longest input of one `upsample` (mu-law bytes) and one `decimate` (PCM16 bytes). */
  readonly upBlockBytes = valueOf(this.#wasm.UP_BLOCK_MAX);
  readonly downBlockBytes = 2 * valueOf(this.#wasm.DOWN_BLOCK_MAX);
  readonly #input = valueOf(this.#wasm.INPUT);
  readonly #pcmOutput = valueOf(this.#wasm.PCM_OUTPUT);
  readonly #mulawOutput = valueOf(this.#wasm.MULAW_OUTPUT);
  /** All of the kernel's memory. Growing it detaches the old buffer, so these three are then made anew. */
  #bytes = Buffer.from(this.#wasm.memory.buffer);
  #pcm = this.#bytes.subarray(0, 0);
  #mulaw = this.#bytes.subarray(0, 0);
  #slotsEnd = valueOf(this.#wasm.SLOTS);
  readonly #freeSlots = new Map<number, number[]>([
    [valueOf(this.#wasm.UP_SLOT_BYTES), []],
    [valueOf(this.#wasm.DOWN_SLOT_BYTES), []],
  ]);

  constructor() {
    this.#fillCodec();
    this.#fillFilters();
  }

  /** Bytes of memory that the kernel holds; grows with the number of slots in use at once, never shrinks. */
  get memoryBytes(): number {
    return this.#bytes.length;
  }

  /** State of an interpolator that has heard nothing but silence. */
  takeUpSlot(): number {
    const slot = this.#take(valueOf(this.#wasm.UP_SLOT_BYTES));
    this.clearUpSlot(slot);
    return slot;
  }

  clearUpSlot(slot: number): void {
    this.#bytes.fill(MULAW_SILENCE, slot, slot + valueOf(this.#wasm.UP_SLOT_BYTES));
  }

  giveBackUpSlot(slot: number): void {
    this.#freeSlots.get(valueOf(this.#wasm.UP_SLOT_BYTES))?.push(slot);
  }

  /** State of a decimator that has heard nothing but silence. */
  takeDownSlot(): number {
    const slot = this.#take(valueOf(this.#wasm.DOWN_SLOT_BYTES));
    this.clearDownSlot(slot);
    return slot;
  }

  /** One sample less than a window is kept, so that the first output comes with the first input sample. */
  clearDownSlot(slot: number): void {
    this.#bytes.fill(0, slot, slot + valueOf(this.#wasm.DOWN_SLOT_BYTES));
    this.#bytes.writeInt32LE(2 * (DOWN_DESIGN.taps - 1), slot);
  }

  giveBackDownSlot(slot: number): void {
    this.#freeSlots.get(valueOf(this.#wasm.DOWN_SLOT_BYTES))?.push(slot);
  }

  /** Forgets half a sample at the end of what a decimator has heard. */
  dropOddByte(slot: number): void {
    this.#bytes.writeInt32LE(this.#bytes.readInt32LE(slot) & ~1, slot);
  }

  /** PCM16 at 16 kHz of at most `upBlockBytes` mu-law bytes: a view, valid until the kernel is used again. */
  upsample(slot: number, codes: Uint8Array): Buffer {
    this.#bytes.set(codes, this.#input);
    this.#wasm.upsample(slot, codes.length);
    return this.#pcmView(4 * codes.length);
  }

  /** PCM16 at 8 kHz of at most `downBlockBytes` bytes of PCM16 at 24 kHz: a view, valid until the next use. */
  decimate(slot: number, pcm24k: Uint8Array): Buffer {
    this.#bytes.set(pcm24k, this.#input);
    return this.#pcmView(2 * this.#wasm.decimate(slot, pcm24k.length));
  }

  /** The same as mu-law. */
  decimateToMulaw(slot: number, pcm24k: Uint8Array): Buffer {
    this.#bytes.set(pcm24k, this.#input);
    const count = this.#wasm.decimate(slot, pcm24k.length);
    this.#wasm.encode(count);
    if (this.#mulaw.length !== count) {
      this.#mulaw = this.#bytes.subarray(this.#mulawOutput, this.#mulawOutput + count);
    }
    return this.#mulaw;
  }

  /** Mu-law of at most `upBlockBytes` samples of PCM16 at 8 kHz: a view, valid until the next use. */
  encodeToMulaw(pcm8k: Int16Array): Buffer {
    new Int16Array(this.#wasm.memory.buffer, this.#pcmOutput, pcm8k.length).set(pcm8k);
    this.#wasm.encode(pcm8k.length);
    return this.#bytes.subarray(this.#mulawOutput, this.#mulawOutput + pcm8k.length);
  }

  /** Nearly all frames have one length, so the view of the last length is kept. */
  #pcmView(byteLength: number): Buffer {
    if (this.#pcm.length !== byteLength) {
      this.#pcm = this.#bytes.subarray(this.#pcmOutput, this.#pcmOutput + byteLength);
    }
    return this.#pcm;
  }

  #take(slotBytes: number): number {
    const used = this.#freeSlots.get(slotBytes)?.pop();
    if (used !== undefined) return used;
    const slot = this.#slotsEnd;
    this.#slotsEnd += slotBytes;
    if (this.#slotsEnd > this.#bytes.length) {
      this.#wasm.memory.grow(Math.ceil((this.#slotsEnd - this.#bytes.length) / WASM_PAGE_BYTES));
      this.#bytes = Buffer.from(this.#wasm.memory.buffer);
      this.#pcm = this.#bytes.subarray(0, 0);
      this.#mulaw = this.#bytes.subarray(0, 0);
    }
    return slot;
  }

  /**
   * Decoding takes the library's sample for each code. The encoding table has one entry for four neighbouring samples:
   * G.711 decides on 14 bits, so all four have one code. The library decides on 16, which sets it apart from G.711 on
   * the first sample of a group, and only for negative samples at a tie; the second stands for the group.
   */
  #fillCodec(): void {
    new Float32Array(this.#wasm.memory.buffer, valueOf(this.#wasm.DECODE_TABLE), 256).set(MULAW_SAMPLES);
    const encode = new Uint8Array(this.#wasm.memory.buffer, valueOf(this.#wasm.ENCODE_TABLE), 16_384);
    for (let group = 0; group < 16_384; group++) {
      const sample = ((group << 18) >> 16) + 1;
      encode[group] = mulaw.encodeSample(sample) & 0xff;
    }
  }

  #fillFilters(): void {
    // Of the half-band filter the even taps are stored, scaled so that each output phase has a gain of 1.
    const up = designLowpass(UP_DESIGN).filter((_weight, tap) => tap % 2 === 0);
    const upGain = up.reduce((sum, weight) => sum + weight, 0);
    this.#fill(
      this.#wasm.UP_TAPS_TABLE,
      up.subarray(0, 16).map((weight) => weight / upGain),
    );
    const down = designLowpass(DOWN_DESIGN);
    this.#fill(
      this.#wasm.DOWN_OUTER_TABLE,
      down.filter((_weight, tap) => tap % 3 === 0),
    );
    this.#fill(
      this.#wasm.DOWN_MIDDLE_TABLE,
      down.subarray(0, 48).filter((_weight, tap) => tap % 3 === 1),
    );
  }

  #fill(table: WebAssembly.Global, weights: Float64Array): void {
    new Float32Array(this.#wasm.memory.buffer, valueOf(table), weights.length).set(weights);
  }
}

function valueOf(global: WebAssembly.Global): number {
  return Number(global.value);
}

export const kernel = new Kernel();
