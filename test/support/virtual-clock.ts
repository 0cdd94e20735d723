export { VirtualClock } from '../../src/replay/virtual-clock.js';
