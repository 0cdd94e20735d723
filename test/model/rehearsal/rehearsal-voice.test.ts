import { describe, expect, it } from 'vitest';
import { rehearsalVoice } from '../../../src/model/rehearsal/rehearsal-voice.js';
import { SPEECH_VOICES } from '../../../src/model/rehearsal/speech-synthesizer.js';

describe('the rehearsal voice', () => {
  it('is the same for a name however it is written, and differs between names', () => {
    expect(['Kore', ' kore', 'KORE'].map(rehearsalVoice)).toEqual(['slt', 'slt', 'slt']);
    expect(['Puck', 'Charon', 'Fenrir'].map(rehearsalVoice)).toEqual(['rms', 'awb', 'kal16']);
  });

  it('exists for every name and for none', () => {
    for (const name of [undefined, '', ' ', 'Zubenelgenubi', 'ünknown', '\u0000']) {
      expect(SPEECH_VOICES).toContain(rehearsalVoice(name));
    }
    expect(rehearsalVoice(undefined)).toBe('slt');
  });
});
