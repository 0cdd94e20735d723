import shipped from '../../../agents/support.js';
import { soaked } from '../soaked-agent.js';

export default soaked(shipped);
