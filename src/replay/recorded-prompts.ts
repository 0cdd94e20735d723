/** What the recorded prompts in `src/call/prompts` say, by file name. */
export const RECORDED_PROMPTS = {
  apology:
    "I'm sorry, we have a technical problem and have to end this call. Please call again later. Goodbye.",
  goodbye: 'Thank you for calling. Goodbye.',
  unavailable: "I'm sorry, we cannot take your call at the moment. Please call again later. Goodbye.",
  draining: "I'm sorry, we are taking a short break. Please call again in a few minutes. Goodbye.",
  'still-there': 'Are you still there?',
} as const;
