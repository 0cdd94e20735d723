/**
 * CPU time and memory of another process, from Linux' /proc (the benchmarks' only platform).
 */
import { readFileSync } from 'node:fs';

/** USER_HZ: fixed at 100 in the kernel's interface on every architecture Node runs on. */
const TICKS_PER_SECOND = 100;

/** utime and stime of all the process's threads, in milliseconds; resolution 10 ms. */
export function cpuTimes(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [userMs, systemMs] = [fields[11], fields[12]].map(
    (ticks) => (Number(ticks) * 1000) / TICKS_PER_SECOND,
  );
  return { userMs, systemMs };
}

/** Time that a core has spent on anything but idling, in milliseconds; resolution 10 ms. What a hypervisor took counts. */
export function coreBusyMs(core) {
  const line = new RegExp(`^cpu${core} (.*)$`, 'm').exec(readFileSync('/proc/stat', 'latin1'))?.[1];
  if (line === undefined) return 0;
  const [user, nice, system, , , irq, softirq, steal] = line.split(' ').map(Number);
  return ((user + nice + system + irq + softirq + steal) * 1000) / TICKS_PER_SECOND;
}

/** Resident memory in kB. */
export function residentKb(pid) {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  return match === null ? 0 : Number(match[1]);
}
