/**
 * The simulated caller's sound, and how one of its 20 ms frames is known again at the model's end of the server, after
 * decoding and resampling. Each frame is a 1 kHz tone; its loudness steps through eight levels, one halving apart, so
 * that the loudness in the middle of a frame names its number modulo eight. Frames stay in order, hence the number is exact
 * unless eight in a row are lost.
 */

/** 20 ms of mu-law at 8 kHz. */
export const FRAME_BYTES = 160;
const LEVELS = 8;
const LOUDEST = 30_000;
/** Below half of the quietest level it is not one of ours: filled-in silence, a filter's tail. */
const QUIETEST = (LOUDEST / 2 ** (LEVELS - 1)) * 0.7;
/** Send times are kept this long: 5 s of frames. */
const RING = 256;

/** Mu-law of one sample, by the formula of ITU-T G.711 (14-bit magnitude, bias 33, inverted bits). */
function mulawOf(sample) {
  const magnitude = Math.min(32_635, Math.abs(sample)) + 132;
  const exponent = Math.floor(Math.log2(magnitude)) - 7;
  const mantissa = (magnitude >> (exponent + 3)) & 0x0f;
  return ~((sample < 0 ? 0x80 : 0) | (exponent << 4) | mantissa) & 0xff;
}

/** Loudness that each mu-law code stands for. */
const MULAW_LOUDNESS = Float64Array.from({ length: 256 }, (_, code) => {
  const inverted = ~code & 0xff;
  return ((((inverted & 0x0f) << 3) + 132) << ((inverted >> 4) & 7)) - 132;
});

/** Base64 of one frame per level, the loudest first. */
export const FRAME_PAYLOADS = Array.from({ length: LEVELS }, (_, level) => {
  const loudness = LOUDEST / 2 ** level;
  const frame = Buffer.alloc(FRAME_BYTES);
  for (let i = 0; i < FRAME_BYTES; i += 1) {
    frame[i] = mulawOf(Math.round(loudness * Math.sin((2 * Math.PI * 1000 * i) / 8000)));
  }
  return frame.toString('base64');
});

/** The level of a frame whose largest sample is `loudness`, or −1 where it is none of ours. */
function levelOf(loudness) {
  if (loudness < QUIETEST) return -1;
  return Math.min(LEVELS - 1, Math.max(0, Math.round(Math.log2(LOUDEST / loudness))));
}

/** Levels of the 20 ms pieces of `sound`: `pcm16k` is 16 kHz PCM16 little-endian, `mulaw8k` mu-law at 8 kHz.
 * One period of the tone in the middle of each piece is looked at. */
export const PIECE_READERS = {
  pcm16k: {
    bytes: 640,
    /** Two periods of 16 samples. */
    windowBytes: 64,
    level(window) {
      let loudest = 0;
      for (let at = 0; at + 1 < window.length; at += 2) {
        loudest = Math.max(loudest, Math.abs(window.readInt16LE(at)));
      }
      return levelOf(loudest);
    },
  },
  mulaw8k: {
    bytes: FRAME_BYTES,
    windowBytes: 16,
    level(window) {
      let loudest = 0;
      for (const code of window) loudest = Math.max(loudest, MULAW_LOUDNESS[code]);
      return levelOf(loudest);
    },
  },
};

/** Matches the frames one call sent with those its model received. */
export class FrameTracker {
  #measured;
  #sentAt = new Float64Array(RING);
  #sent = 0;
  /** The number of the frame that is expected next at the model. */
  #expected = 0;

  /** `measured` is a Measurements. */
  constructor(measured) {
    this.#measured = measured;
  }

  /** The level to send next; call `sent` with the time of the write. */
  get nextLevel() {
    return this.#sent % LEVELS;
  }

  sent(now) {
    this.#sentAt[this.#sent % RING] = now;
    this.#sent += 1;
  }

  /** A frame of `level` has reached the model. */
  arrived(level, now) {
    const skipped = (level - (this.#expected % LEVELS) + LEVELS) % LEVELS;
    const number = this.#expected + skipped;
    if (number >= this.#sent) {
      this.#measured.framesUnknown += 1;
      return;
    }
    if (this.#sentAt[this.#expected % RING] >= this.#measured.windowStartAt) {
      this.#measured.framesLost += skipped;
    }
    this.#expected = number + 1;
    if (this.#sent - number > RING) return;
    this.#measured.addFrameToModel(this.#sentAt[number % RING], now);
  }
}
