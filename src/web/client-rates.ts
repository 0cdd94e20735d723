/** How fast one web client may send what. */
import type { Clock } from '../clock.js';
import {
  WEB_FAULTS_BURST,
  WEB_FAULTS_PER_SECOND,
  WEB_IMAGES_BURST,
  WEB_IMAGES_PER_SECOND,
  WEB_MESSAGES_BURST,
  WEB_MESSAGES_PER_SECOND,
  WEB_TEXTS_BURST,
  WEB_TEXTS_PER_SECOND,
  WEB_TOLD_AGAIN_MS,
} from '../limits.js';
import { RateBucket } from './rate-bucket.js';

export class ClientRates {
  readonly messages: RateBucket;
  readonly texts: RateBucket;
  readonly images: RateBucket;
  /** Messages that made no sense. */
  readonly faults: RateBucket;
  /** Telling that pictures were left out unread. */
  readonly telling: RateBucket;

  constructor(clock: Clock) {
    this.messages = new RateBucket({ clock, burst: WEB_MESSAGES_BURST, perSecond: WEB_MESSAGES_PER_SECOND });
    this.texts = new RateBucket({ clock, burst: WEB_TEXTS_BURST, perSecond: WEB_TEXTS_PER_SECOND });
    this.images = new RateBucket({ clock, burst: WEB_IMAGES_BURST, perSecond: WEB_IMAGES_PER_SECOND });
    this.faults = new RateBucket({ clock, burst: WEB_FAULTS_BURST, perSecond: WEB_FAULTS_PER_SECOND });
    this.telling = new RateBucket({ clock, burst: 1, perSecond: 1000 / WEB_TOLD_AGAIN_MS });
  }
}
