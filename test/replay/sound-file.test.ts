import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AudioError } from '../../src/errors.js';
import { toTelephoneRate } from '../../src/replay/caller-resampler.js';
import { decodeWav, readCallerSound, writeWav } from '../../src/replay/sound-file.js';
import { amplitudeOf, concat, decode, silence, sine, tone, toPcm16 } from './tones.js';

const { WaveFile } = createRequire(import.meta.url)('wavefile') as typeof import('wavefile');

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'earshot-sound-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

function wavOf(samples: Float64Array, rate: number, channels = 1): InstanceType<typeof WaveFile> {
  const pcm = toPcm16(samples);
  const wav = new WaveFile();
  const sound =
    channels === 1
      ? pcm
      : Array.from({ length: channels }, (_, index) => (index === 0 ? pcm : new Int16Array(pcm.length)));
  wav.fromScratch(channels, rate, '16', sound as Int16Array);
  return wav;
}

describe('caller sound files', () => {
  it.each([8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000])(
    'keeps the voice band of a %i Hz recording and its length',
    (rate) => {
      const sound = decodeWav(wavOf(sine(1_000, 500, { rate }), rate).toBuffer(), 'a.wav');
      expect(sound.length).toBe(4_000);
      expect(amplitudeOf(decode(sound), 1_000)).toBeCloseTo(0.5, 2);
    },
  );

  it.each(['8', '24', '32', '32f', '64'])('reads %s-bit samples at the right level', (depth) => {
    const wav = wavOf(sine(1_000, 500, { rate: 16_000 }), 16_000);
    wav.toBitDepth(depth);
    expect(amplitudeOf(decode(decodeWav(wav.toBuffer(), 'a.wav')), 1_000)).toBeCloseTo(0.5, 2);
  });

  it.each(['toMuLaw', 'toALaw'] as const)('reads a file packed by %s', (pack) => {
    const wav = wavOf(sine(1_000, 505, { rate: 8_000 }), 8_000);
    wav[pack]();
    expect(amplitudeOf(decode(decodeWav(wav.toBuffer(), 'a.wav')), 1_000)).toBeCloseTo(0.5, 1);
  });

  it.each([
    ['PCM', '16', 1],
    ['float', '32f', 3],
    ['double', '64', 3],
  ])('reads %s behind the extensible tag', (_what, depth, tag) => {
    const wav = wavOf(sine(1_000, 500, { rate: 16_000 }), 16_000);
    wav.toBitDepth(depth);
    // The first two bytes of the subformat GUID are the tag; the rest is the same for all.
    const subformat = [tag, 0x0010_0000, 0xaa00_0080, 0x719b_3800];
    const extensible = { audioFormat: 0xff_fe, chunkSize: 40, cbSize: 22, validBitsPerSample: 0, subformat };
    Object.assign(wav.fmt, extensible);
    const bytes = wav.toBuffer();
    expect(Buffer.from(bytes).readUInt16LE(20)).toBe(0xff_fe);
    expect(amplitudeOf(decode(decodeWav(bytes, 'a.wav')), 1_000)).toBeCloseTo(0.5, 2);
  });

  it('refuses a packed format that it cannot read, naming those it can', () => {
    const wav = wavOf(sine(1_000, 505, { rate: 8_000 }), 8_000);
    wav.toIMAADPCM();
    expect(() => decodeWav(wav.toBuffer(), 'a.wav')).toThrow(
      'a.wav: holds sound in a format that is not read (tag 17',
    );
  });

  it('takes telephone mu-law byte for byte', () => {
    const wav = new WaveFile();
    const sound = tone(100);
    wav.fromScratch(1, 8_000, '8m', sound);
    expect(decodeWav(wav.toBuffer(), 'a.wav')).toEqual(sound);
  });

  it('mixes channels down to one', () => {
    const sound = decodeWav(wavOf(sine(1_000, 500, { rate: 8_000 }), 8_000, 2).toBuffer(), 'a.wav');
    expect(sound.length).toBe(4_000);
    expect(amplitudeOf(decode(sound), 1_000)).toBeCloseTo(0.25, 2);
  });

  it('keeps 300 to 3400 Hz within 0.3 dB and lets nothing above the telephone band fold back', () => {
    for (const rate of [16_000, 44_100, 48_000]) {
      for (const hz of [300, 1_000, 2_500, 3_400]) {
        const kept = amplitudeOf(toTelephoneRate(sine(hz, 500, { rate }), rate), hz);
        expect(Math.abs(20 * Math.log10(kept / 0.5)), `${hz} Hz at ${rate}`).toBeLessThan(0.3);
      }
      for (const hz of [4_600, 5_000, 6_500, 7_700]) {
        const folded = amplitudeOf(toTelephoneRate(sine(hz, 500, { rate }), rate), 8_000 - hz);
        expect(20 * Math.log10(folded / 0.5), `${hz} Hz at ${rate}`).toBeLessThan(-60);
      }
    }
  });

  it('reads headerless mu-law as it is', async () => {
    for (const name of ['a.ulaw', 'a.raw', 'A.ULAW']) {
      await writeFile(join(folder, name), tone(50));
      expect(await readCallerSound(join(folder, name))).toEqual(tone(50));
    }
  });

  it('writes what was heard as WAV and reads the same sound back', async () => {
    const path = join(folder, 'heard.wav');
    const heard = concat(silence(100), tone(300), silence(40));
    await writeWav(path, heard);
    expect(await readCallerSound(path)).toEqual(heard);
    const wav = new WaveFile(new Uint8Array(await readFile(path)));
    expect(wav.fmt).toMatchObject({ numChannels: 1, sampleRate: 8_000, bitsPerSample: 16 });
  });

  it('writes both sides as left and right, the shorter one padded with silence', async () => {
    const path = join(folder, 'both.wav');
    await writeWav(path, tone(100, 440), tone(200, 880));
    const wav = new WaveFile(new Uint8Array(await readFile(path)));
    const [left, right] = wav.getSamples(false) as unknown as [Float64Array, Float64Array];
    expect([left.length, right.length]).toEqual([1_600, 1_600]);
    expect(amplitudeOf(left.subarray(0, 800), 440) / 32_768).toBeCloseTo(0.5, 1);
    expect(left.subarray(800).every((sample) => sample === 0)).toBe(true);
    expect(amplitudeOf(right, 880) / 32_768).toBeCloseTo(0.5, 1);
  });

  it.each<[string, string, (path: string) => Promise<void>]>([
    ['missing.wav', 'does not exist', () => Promise.resolve()],
    ['empty.wav', 'is empty', (path) => writeFile(path, '')],
    ['empty.ulaw', 'is empty', (path) => writeFile(path, '')],
    [
      'text.wav',
      'is not a WAV file',
      (path) => writeFile(path, 'this is text, and long enough to hold a header of a WAV'),
    ],
    ['tiny.wav', 'is not a WAV file', (path) => writeFile(path, 'x')],
    [
      'header.wav',
      'is a damaged WAV file',
      async (path) => {
        await writeFile(path, wavOf(sine(440, 100), 8_000).toBuffer());
        await truncate(path, 30);
      },
    ],
    [
      'cut.wav',
      'is truncated: 700 of 1600 bytes',
      async (path) => {
        await writeFile(path, wavOf(sine(440, 100), 8_000).toBuffer());
        await truncate(path, 44 + 900);
      },
    ],
    ['silent.wav', 'holds no sound', (path) => writeFile(path, wavOf(new Float64Array(0), 8_000).toBuffer())],
    ['rate.wav', 'has a broken header', (path) => writeFile(path, wavOf(sine(440, 100), 800).toBuffer())],
    [
      'long.ulaw',
      'is longer than 60 minutes',
      (path) => writeFile(path, new Uint8Array(60 * 60 * 8_000 + 1)),
    ],
    ['call.ndjson', 'is a call fixture, not a sound', (path) => writeFile(path, '{}')],
    ['voice.mp3', 'must be a .wav file', (path) => writeFile(path, 'ID3')],
  ])('refuses %s: %s', async (name, why, make) => {
    const path = join(folder, name);
    await make(path);
    const reading = readCallerSound(path);
    await expect(reading).rejects.toThrow(AudioError);
    await expect(reading).rejects.toThrow(`${path}: ${why}`);
  });

  it('refuses a folder and a WAV that is longer than an hour', async () => {
    await expect(readCallerSound(join(folder, '.'))).rejects.toThrow('must be a .wav file');
    const header = Buffer.from(wavOf(new Float64Array(0), 8_000).toBuffer());
    const long = Buffer.concat([header, new Uint8Array(60 * 60 * 16_000 + 2)]);
    long.writeUInt32LE(long.length - 8, 4);
    long.writeUInt32LE(long.length - 44, 40);
    expect(() => decodeWav(new Uint8Array(long), 'long.wav')).toThrow('is longer than 60 minutes');
  });

  it('says which file could not be written', async () => {
    await expect(writeWav(join(folder, 'nowhere', 'x.wav'), tone(20))).rejects.toThrow(
      'x.wav: cannot be written',
    );
  });
});
