/** A value of an author's that throws wherever it is touched. */
export function hostile(target: object = {}): never {
  const no = (): never => {
    throw new Error('touched');
  };
  const traps = ['get', 'has', 'getPrototypeOf', 'ownKeys', 'getOwnPropertyDescriptor', 'set', 'apply'];
  return new Proxy(target, Object.fromEntries(traps.map((trap) => [trap, no]))) as never;
}
