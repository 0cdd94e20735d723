/**
 * The part of the WebAssembly JavaScript interface that the sound path uses. Node has all of it, but TypeScript
 * declares it only together with a browser's globals, which this server does not want to see.
 */
declare namespace WebAssembly {
  /** A compiled module, good only for making an instance of it. */
  const Module: new (bytes: Uint8Array) => object;

  class Instance {
    constructor(module: object);
    /** What is in here depends on the module; the loader says what it expects. */
    readonly exports: object;
  }

  class Memory {
    readonly buffer: ArrayBuffer;
    /** Adds pages of 64 KiB, which detaches the old buffer; returns how many there were. */
    grow(pages: number): number;
  }

  class Global {
    readonly value: unknown;
  }
}
