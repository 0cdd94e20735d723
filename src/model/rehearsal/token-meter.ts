/**
 * Tokens of a rehearsal conversation, counted as Gemini bills them: every turn pays for the whole context again, old
 * sound included. The figures are made up by rule, so that what reads `usageMetadata` has something true to its form.
 */

/** Google's figures: sound is 25 tokens a second, English text about four characters a token. */
const AUDIO_TOKENS_PER_SECOND = 25;
const CHARS_PER_TOKEN = 4;

export class TokenMeter {
  #textTokens = 0;
  #audioSeconds = 0;

  addText(text: string): void {
    this.#textTokens += Math.ceil(text.length / CHARS_PER_TOKEN);
  }

  /** Sound from the caller, silence too. */
  addHeard(seconds: number): void {
    this.#audioSeconds += seconds;
  }

  /** `usageMetadata` of a turn that spoke for so long; its speech is context from then on. */
  usageOfTurn(spokenSeconds: number): object {
    const text = this.#textTokens;
    const heard = Math.round(this.#audioSeconds * AUDIO_TOKENS_PER_SECOND);
    const spoken = Math.round(spokenSeconds * AUDIO_TOKENS_PER_SECOND);
    this.#audioSeconds += spokenSeconds;
    return {
      promptTokenCount: text + heard,
      responseTokenCount: spoken,
      totalTokenCount: text + heard + spoken,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: text },
        { modality: 'AUDIO', tokenCount: heard },
      ],
      responseTokensDetails: [{ modality: 'AUDIO', tokenCount: spoken }],
    };
  }
}
