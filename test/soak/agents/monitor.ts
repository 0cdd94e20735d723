import shipped from '../../../agents/monitor.js';
import { soaked } from '../soaked-agent.js';

export default soaked(shipped);
