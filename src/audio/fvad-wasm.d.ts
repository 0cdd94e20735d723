/** The part of @echogarden/fvad-wasm (libfvad compiled by Emscripten, without types of its own) that is used here. */
declare module '@echogarden/fvad-wasm' {
  export interface FvadModule {
    /** All of its memory as samples; replaced when the memory grows, so it is read anew for each use. */
    readonly HEAP16: Int16Array;
    readonly _malloc: (bytes: number) => number;
    /** A detector's address; 0 when memory is out. */
    readonly _fvad_new: () => number;
    readonly _fvad_free: (detector: number) => void;
    /** 0 (finds most) to 3 (is wrong least); returns 0. */
    readonly _fvad_set_mode: (detector: number, mode: number) => number;
    readonly _fvad_set_sample_rate: (detector: number, sampleRateHz: number) => number;
    /** One frame of 10, 20 or 30 ms: 1 voiced, 0 not, -1 for a frame of another length. */
    readonly _fvad_process: (detector: number, samples: number, sampleCount: number) => number;
  }

  const createFvad: () => Promise<FvadModule>;
  export default createFvad;
}
