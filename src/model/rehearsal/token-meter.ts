/**
 * Tokens of a rehearsal conversation, counted as Gemini bills them: every turn pays for the whole context again, old
 * sound included. The figures are made up by rule, so that what reads `usageMetadata` has something true to its form.
 */

/** Google's figures: sound is 25 tokens a second, English text about four characters a token. */
const AUDIO_TOKENS_PER_SECOND = 25;
const CHARS_PER_TOKEN = 4;
const TOKENS_PER_PICTURE = 258;

export class TokenMeter {
  #textTokens = 0;
  #audioSeconds = 0;
  #pictures = 0;

  addText(text: string): void {
    this.#textTokens += Math.ceil(text.length / CHARS_PER_TOKEN);
  }

  /** Sound from the caller, silence too. */
  addHeard(seconds: number): void {
    this.#audioSeconds += seconds;
  }

  addPicture(): void {
    this.#pictures += 1;
  }

  /** `usageMetadata` of a turn that spoke for so long; its speech is context from then on. */
  usageOfTurn(spokenSeconds: number): object {
    const text = this.#textTokens;
    const heard = Math.round(this.#audioSeconds * AUDIO_TOKENS_PER_SECOND);
    const spoken = Math.round(spokenSeconds * AUDIO_TOKENS_PER_SECOND);
    const seen = this.#pictures * TOKENS_PER_PICTURE;
    this.#audioSeconds += spokenSeconds;
    return {
      promptTokenCount: text + heard + seen,
      responseTokenCount: spoken,
      totalTokenCount: text + heard + seen + spoken,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: text },
        { modality: 'AUDIO', tokenCount: heard },
        ...(seen === 0 ? [] : [{ modality: 'VIDEO', tokenCount: seen }]),
      ],
      responseTokensDetails: [{ modality: 'AUDIO', tokenCount: spoken }],
    };
  }
}
