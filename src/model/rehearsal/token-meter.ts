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
  /** Of results that no turn has been billed for; they are context like other text from the next turn on. */
  #resultTokens = 0;
  #thoughtTokens = 0;
  #audioSeconds = 0;
  #pictures = 0;

  addText(text: string): void {
    this.#textTokens += textTokens(text);
  }

  /** A function's result. */
  addResult(text: string): void {
    this.#resultTokens += textTokens(text);
  }

  /** Billed with its turn and no context afterwards. */
  addThought(text: string): void {
    this.#thoughtTokens += textTokens(text);
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
    const results = this.#resultTokens;
    const thoughts = this.#thoughtTokens;
    this.#audioSeconds += spokenSeconds;
    this.#textTokens += results;
    this.#resultTokens = 0;
    this.#thoughtTokens = 0;
    return {
      promptTokenCount: text + heard + seen,
      responseTokenCount: spoken,
      ...(thoughts === 0 ? {} : { thoughtsTokenCount: thoughts }),
      ...(results === 0 ? {} : { toolUsePromptTokenCount: results }),
      totalTokenCount: text + heard + seen + spoken + results + thoughts,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: text },
        { modality: 'AUDIO', tokenCount: heard },
        ...(seen === 0 ? [] : [{ modality: 'VIDEO', tokenCount: seen }]),
      ],
      responseTokensDetails: [{ modality: 'AUDIO', tokenCount: spoken }],
    };
  }
}

function textTokens(text: string): number {
  return Math.ceil(text.length / CHARS_PER_TOKEN);
}
