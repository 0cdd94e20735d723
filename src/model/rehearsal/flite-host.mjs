/**
 * The little of an operating system that flite needs to run as WebAssembly: its arguments, and one file in memory
 * to write into. It stands in for `node:wasi`, which on Node 20 ends the whole process with a segmentation fault
 * after some tens of runs in a worker (20.20.2), and warns on standard error besides.
 * https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md
 */

/** errno of preview 1. */
const SUCCESS = 0;
const BAD_DESCRIPTOR = 8;
const INVALID = 28;
const NO_ENTRY = 44;

/** Descriptors: the standard ones, one open folder, and the one file. */
const FOLDER_FD = 3;
const FILE_FD = 4;
const FOLDER_NAME = new TextEncoder().encode('/');
const FILETYPE_CHARACTER_DEVICE = 2;
const FILETYPE_DIRECTORY = 3;
const FILETYPE_REGULAR_FILE = 4;
const OPEN_CREATE = 1;

/** About three minutes at 16 kHz; flite is never given that much text. */
const FILE_MAX_BYTES = 6 * 1024 * 1024;

class Exit extends Error {
  constructor(status) {
    super(`flite ended with status ${status}`);
    this.status = status;
  }
}

class FliteHost {
  #args;
  #memory;
  #file = new Uint8Array(256 * 1024);
  #length = 0;
  #position = 0;

  constructor(args) {
    const encoder = new TextEncoder();
    this.#args = args.map((arg) => encoder.encode(`${arg}\0`));
  }

  set memory(memory) {
    this.#memory = memory;
  }

  get file() {
    return this.#file.slice(0, this.#length);
  }

  /** A new view each time: the memory's buffer changes when it grows. */
  get #view() {
    return new DataView(this.#memory.buffer);
  }

  /** The functions flite imports; every other function of preview 1 is not there. */
  imports() {
    return {
      args_sizes_get: (countAt, bytesAt) => {
        this.#view.setUint32(countAt, this.#args.length, true);
        this.#view.setUint32(
          bytesAt,
          this.#args.reduce((sum, arg) => sum + arg.length, 0),
          true,
        );
        return SUCCESS;
      },
      args_get: (pointersAt, bytesAt) => this.#writeArgs(pointersAt, bytesAt),
      // Time stands still: the same text sounds the same whenever it is spoken.
      clock_time_get: (_id, _precision, at) => {
        this.#view.setBigUint64(at, 0n, true);
        return SUCCESS;
      },
      fd_close: (fd) => (fd <= FILE_FD ? SUCCESS : BAD_DESCRIPTOR),
      fd_fdstat_get: (fd, at) => this.#writeStat(fd, at),
      fd_fdstat_set_flags: () => SUCCESS,
      fd_prestat_get: (fd, at) => {
        if (fd !== FOLDER_FD) return BAD_DESCRIPTOR;
        this.#view.setUint32(at, 0, true);
        this.#view.setUint32(at + 4, FOLDER_NAME.length, true);
        return SUCCESS;
      },
      fd_prestat_dir_name: (fd, at) => {
        if (fd !== FOLDER_FD) return BAD_DESCRIPTOR;
        new Uint8Array(this.#memory.buffer).set(FOLDER_NAME, at);
        return SUCCESS;
      },
      // Nothing is read: standard input is at its end, and the file is only written.
      fd_read: (_fd, _vectorsAt, _count, readAt) => {
        this.#view.setUint32(readAt, 0, true);
        return SUCCESS;
      },
      fd_seek: (fd, offset, whence, positionAt) => this.#seek(fd, offset, whence, positionAt),
      fd_write: (fd, vectorsAt, count, writtenAt) => this.#write(fd, vectorsAt, count, writtenAt),
      path_open: (_folder, _lookup, _path, _pathLength, openFlags, _rights, _inherited, _flags, fdAt) => {
        // The output is the only file there is.
        if ((openFlags & OPEN_CREATE) === 0) return NO_ENTRY;
        this.#view.setUint32(fdAt, FILE_FD, true);
        return SUCCESS;
      },
      proc_exit: (status) => {
        throw new Exit(status);
      },
    };
  }

  #writeArgs(pointersAt, bytesAt) {
    const bytes = new Uint8Array(this.#memory.buffer);
    let at = bytesAt;
    for (const [index, arg] of this.#args.entries()) {
      this.#view.setUint32(pointersAt + 4 * index, at, true);
      bytes.set(arg, at);
      at += arg.length;
    }
    return SUCCESS;
  }

  #writeStat(fd, at) {
    if (fd > FILE_FD) return BAD_DESCRIPTOR;
    new Uint8Array(this.#memory.buffer, at, 8).fill(0);
    const filetype = fd === FOLDER_FD ? FILETYPE_DIRECTORY : FILETYPE_REGULAR_FILE;
    this.#view.setUint8(at, fd < FOLDER_FD ? FILETYPE_CHARACTER_DEVICE : filetype);
    // Every right, for itself and for what is opened below it.
    this.#view.setBigUint64(at + 8, 0xffff_ffff_ffff_ffffn, true);
    this.#view.setBigUint64(at + 16, 0xffff_ffff_ffff_ffffn, true);
    return SUCCESS;
  }

  #seek(fd, offset, whence, positionAt) {
    if (fd !== FILE_FD) return BAD_DESCRIPTOR;
    const from = [0, this.#position, this.#length][whence];
    const position = (from ?? Number.NaN) + Number(offset);
    if (!(position >= 0 && position <= FILE_MAX_BYTES)) return INVALID;
    this.#position = position;
    this.#view.setBigUint64(positionAt, BigInt(position), true);
    return SUCCESS;
  }

  #write(fd, vectorsAt, count, writtenAt) {
    const memory = new Uint8Array(this.#memory.buffer);
    let written = 0;
    for (let i = 0; i < count; i += 1) {
      const at = this.#view.getUint32(vectorsAt + 8 * i, true);
      const length = this.#view.getUint32(vectorsAt + 8 * i + 4, true);
      // What flite prints is not kept.
      if (fd === FILE_FD) this.#append(memory.subarray(at, at + length));
      written += length;
    }
    this.#view.setUint32(writtenAt, written, true);
    return SUCCESS;
  }

  #append(bytes) {
    const end = this.#position + bytes.length;
    if (end > FILE_MAX_BYTES) throw new Error('flite spoke for too long');
    if (end > this.#file.length) {
      const larger = new Uint8Array(Math.min(FILE_MAX_BYTES, Math.max(end, 2 * this.#file.length)));
      larger.set(this.#file);
      this.#file = larger;
    }
    this.#file.set(bytes, this.#position);
    this.#position = end;
    this.#length = Math.max(this.#length, end);
  }
}

/** Runs flite once with the arguments and returns what it wrote into its one file. Throws when it fails. */
export async function runFlite(flite, args) {
  const host = new FliteHost(args);
  const instance = await WebAssembly.instantiate(flite, { wasi_snapshot_preview1: host.imports() });
  const { memory, _start: start } = instance.exports;
  host.memory = memory;
  try {
    start();
  } catch (error) {
    if (!(error instanceof Exit) || error.status !== 0) throw error;
  }
  return host.file;
}
