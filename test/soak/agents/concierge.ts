import shipped from '../../../agents/concierge.js';
import { soaked } from '../soaked-agent.js';

export default soaked(shipped);
