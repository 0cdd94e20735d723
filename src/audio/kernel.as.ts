/**
 * The arithmetic of the sound path, in AssemblyScript: mu-law by table and two linear-phase filters in 128-bit SIMD.
 * `npm run build:kernel` compiles it to the committed `kernel.wasm`; `kernel.ts` loads that, fills the tables and hands
 * out the slots that hold each call's filter state. There is no allocator: scratch areas have fixed places (exported
 * below, so that the layout is written down once) and everything from SLOTS on belongs to `kernel.ts`.
 *
 * Every output sample is summed in the same order whatever its lane and block, which is why the result does not
 * depend on how the input was cut. Lanes past the end of the input are computed from leftovers and thrown away.
 */

/** Longest input of one call to `upsample` (8 kHz samples) and to `decimate` (24 kHz samples): 200 ms. */
export const UP_BLOCK_MAX: i32 = 1600;
export const DOWN_BLOCK_MAX: i32 = 4800;

/** mu-law bytes an interpolator remembers: its 32 taps less the newest sample. */
export const UP_HISTORY: i32 = 31;
/** Length of the decimation filter, and the bytes of a window that still lacks one byte. */
export const DOWN_TAPS: i32 = 96;
const DOWN_KEPT_BYTES_MAX: i32 = 2 * DOWN_TAPS - 1;

/** An interpolator's slot: 31 bytes of history. A decimator's: a u32 count, then that many bytes of history. */
export const UP_SLOT_BYTES: i32 = 32;
export const DOWN_SLOT_BYTES: i32 = 4 + 2 * DOWN_TAPS;

/** Outputs of one filter step, and so how far past the last sample a step may read. */
const STEP: i32 = 16;

/** f32[256]: the sample of each mu-law code. */
export const DECODE_TABLE: usize = memory.data(256 * 4, 16);
/** u8[16384]: the mu-law code of each 16-bit sample shifted right by two, as an unsigned index. */
export const ENCODE_TABLE: usize = memory.data(16384, 16);
/** f32[16]: the first half of the interpolator's 32 symmetric taps. */
export const UP_TAPS_TABLE: usize = memory.data(16 * 4, 16);
/** f32[32]: taps 0, 3, 6 … of the decimator, which are taps 95, 92, 89 … too. */
export const DOWN_OUTER_TABLE: usize = memory.data(32 * 4, 16);
/** f32[16]: taps 1, 4, 7 … 46 of the decimator, which are taps 94, 91, 88 … 49 too. */
export const DOWN_MIDDLE_TABLE: usize = memory.data(16 * 4, 16);

const HISTORY_ROOM: i32 = 2 * DOWN_TAPS;
const INPUT_ROOM: usize = memory.data(HISTORY_ROOM + 2 * DOWN_BLOCK_MAX + 64, 16);
/** New input bytes of either direction go here; what a slot remembers is put right before them. */
export const INPUT: usize = INPUT_ROOM + HISTORY_ROOM;
/** i16: PCM16 output of either direction. */
export const PCM_OUTPUT: usize = memory.data(4 * (UP_BLOCK_MAX + STEP), 16);
/** u8: mu-law output of `encode`. */
export const MULAW_OUTPUT: usize = memory.data(UP_BLOCK_MAX + STEP, 16);

/** Input as f32: one run for the interpolator, three (one a phase) for the decimator. */
const PHASE_BYTES: usize = 4 * ((DOWN_BLOCK_MAX + DOWN_TAPS) / 3 + 2 * STEP);
const SAMPLES: usize = memory.data(3 * 4 * ((4800 + 96) / 3 + 2 * 16), 16);

/** First byte that is free for slots. */
export const SLOTS: usize = __heap_base;

/**
 * 8 kHz mu-law to 16 kHz PCM16. Takes `count` codes at INPUT, leaves 2 * `count` samples at PCM_OUTPUT. Odd samples
 * are input samples; even ones lie half-way between two and are summed from the 16 on either side.
 */
export function upsample(slot: usize, count: i32): void {
  const start = INPUT - UP_HISTORY;
  memory.copy(start, slot, UP_HISTORY);
  const total = count + UP_HISTORY;
  for (let i = 0; i < total; i++) {
    store<f32>(SAMPLES + ((<usize>i) << 2), load<f32>(DECODE_TABLE + ((<usize>load<u8>(start + i)) << 2)));
  }
  memory.copy(slot, start + count, UP_HISTORY);
  for (let done = 0; done < count; done += STEP) {
    const at = SAMPLES + ((<usize>done) << 2);
    let sum0 = f32x4.splat(0);
    let sum1 = f32x4.splat(0);
    let sum2 = f32x4.splat(0);
    let sum3 = f32x4.splat(0);
    let older = at;
    let newer = at + 31 * 4;
    for (let tap = UP_TAPS_TABLE; tap < UP_TAPS_TABLE + 64; tap += 4) {
      const weight = v128.load_splat<f32>(tap);
      sum0 = f32x4.add(sum0, f32x4.mul(weight, f32x4.add(v128.load(older, 0), v128.load(newer, 0))));
      sum1 = f32x4.add(sum1, f32x4.mul(weight, f32x4.add(v128.load(older, 16), v128.load(newer, 16))));
      sum2 = f32x4.add(sum2, f32x4.mul(weight, f32x4.add(v128.load(older, 32), v128.load(newer, 32))));
      sum3 = f32x4.add(sum3, f32x4.mul(weight, f32x4.add(v128.load(older, 48), v128.load(newer, 48))));
      older += 4;
      newer -= 4;
    }
    const out = PCM_OUTPUT + ((<usize>done) << 2);
    v128.store(out, interleave(sum0, v128.load(at, 64)), 0);
    v128.store(out, interleave(sum1, v128.load(at, 80)), 16);
    v128.store(out, interleave(sum2, v128.load(at, 96)), 32);
    v128.store(out, interleave(sum3, v128.load(at, 112)), 48);
  }
}

/** Four samples of each operand, rounded and saturated to 16 bits: even[0], odd[0], even[1], odd[1] … */
function interleave(even: v128, odd: v128): v128 {
  const both = i16x8.narrow_i32x4_s(rounded(even), rounded(odd));
  return i8x16.shuffle(both, both, 0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
}

function rounded(samples: v128): v128 {
  return i32x4.trunc_sat_f32x4_s(f32x4.nearest(samples));
}

/**
 * 24 kHz PCM16 to 8 kHz PCM16. Takes `byteCount` bytes at INPUT, a sample may be split between two calls. Leaves
 * the samples at PCM_OUTPUT and returns how many there are.
 */
export function decimate(slot: usize, byteCount: i32): i32 {
  const kept = load<i32>(slot);
  const start = INPUT - kept;
  memory.copy(start, slot + 4, kept);
  const bytes = kept + byteCount;
  const windows = (bytes >> 1) - DOWN_TAPS;
  const count = windows < 0 ? 0 : windows / 3 + 1;
  if (count > 0) {
    splitPhases(start, count + 31);
    filterPhases(count);
  }
  const left = bytes - 6 * count;
  store<i32>(slot, left);
  memory.copy(slot + 4, start + 6 * count, left);
  return count;
}

/** Samples 3m, 3m + 1 and 3m + 2 of the input go, as f32, to phase 0, 1 and 2: `count` to each, rounded up to four. */
function splitPhases(start: usize, count: i32): void {
  let from = start;
  const end = SAMPLES + ((<usize>count) << 2);
  for (let to = SAMPLES; to < end; to += 16) {
    const low = v128.load(from, 0);
    const high = v128.load(from, 16);
    // Each 16-bit sample lands in the upper half of a 32-bit lane, from where the shift brings its sign down.
    const phase0 = i8x16.shuffle(low, high, 0, 0, 0, 1, 0, 0, 6, 7, 0, 0, 12, 13, 0, 0, 18, 19);
    const phase1 = i8x16.shuffle(low, high, 0, 0, 2, 3, 0, 0, 8, 9, 0, 0, 14, 15, 0, 0, 20, 21);
    const phase2 = i8x16.shuffle(low, high, 0, 0, 4, 5, 0, 0, 10, 11, 0, 0, 16, 17, 0, 0, 22, 23);
    v128.store(to, f32x4.convert_i32x4_s(i32x4.shr_s(phase0, 16)));
    v128.store(to + PHASE_BYTES, f32x4.convert_i32x4_s(i32x4.shr_s(phase1, 16)));
    v128.store(to + 2 * PHASE_BYTES, f32x4.convert_i32x4_s(i32x4.shr_s(phase2, 16)));
    from += 24;
  }
}

/**
 * The symmetric filter over the split input: tap 3j weighs sample j of phase 0 and sample 31 - j of phase 2, tap
 * 3j + 1 weighs samples j and 31 - j of phase 1.
 */
function filterPhases(count: i32): void {
  for (let done = 0; done < count; done += STEP) {
    const at = SAMPLES + ((<usize>done) << 2);
    let sum0 = f32x4.splat(0);
    let sum1 = f32x4.splat(0);
    let sum2 = f32x4.splat(0);
    let sum3 = f32x4.splat(0);
    let older = at;
    let newer = at + 2 * PHASE_BYTES + 31 * 4;
    for (let tap = DOWN_OUTER_TABLE; tap < DOWN_OUTER_TABLE + 128; tap += 4) {
      const weight = v128.load_splat<f32>(tap);
      sum0 = f32x4.add(sum0, f32x4.mul(weight, f32x4.add(v128.load(older, 0), v128.load(newer, 0))));
      sum1 = f32x4.add(sum1, f32x4.mul(weight, f32x4.add(v128.load(older, 16), v128.load(newer, 16))));
      sum2 = f32x4.add(sum2, f32x4.mul(weight, f32x4.add(v128.load(older, 32), v128.load(newer, 32))));
      sum3 = f32x4.add(sum3, f32x4.mul(weight, f32x4.add(v128.load(older, 48), v128.load(newer, 48))));
      older += 4;
      newer -= 4;
    }
    older = at + PHASE_BYTES;
    newer = older + 31 * 4;
    for (let tap = DOWN_MIDDLE_TABLE; tap < DOWN_MIDDLE_TABLE + 64; tap += 4) {
      const weight = v128.load_splat<f32>(tap);
      sum0 = f32x4.add(sum0, f32x4.mul(weight, f32x4.add(v128.load(older, 0), v128.load(newer, 0))));
      sum1 = f32x4.add(sum1, f32x4.mul(weight, f32x4.add(v128.load(older, 16), v128.load(newer, 16))));
      sum2 = f32x4.add(sum2, f32x4.mul(weight, f32x4.add(v128.load(older, 32), v128.load(newer, 32))));
      sum3 = f32x4.add(sum3, f32x4.mul(weight, f32x4.add(v128.load(older, 48), v128.load(newer, 48))));
      older += 4;
      newer -= 4;
    }
    const out = PCM_OUTPUT + ((<usize>done) << 1);
    v128.store(out, i16x8.narrow_i32x4_s(rounded(sum0), rounded(sum1)), 0);
    v128.store(out, i16x8.narrow_i32x4_s(rounded(sum2), rounded(sum3)), 16);
  }
}

/** Mu-law of `count` samples at PCM_OUTPUT, left at MULAW_OUTPUT. */
export function encode(count: i32): void {
  for (let i = 0; i < count; i++) {
    const index = (<usize>load<u16>(PCM_OUTPUT + ((<usize>i) << 1))) >> 2;
    store<u8>(MULAW_OUTPUT + i, load<u8>(ENCODE_TABLE + index));
  }
}
