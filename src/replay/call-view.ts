/**
 * The server's own view of a call, `GET /calls/:callSid`, read defensively: the command shows it, and goes on without
 * it where the server does not give it.
 */
import { z } from 'zod';

const callView = z.object({
  callSid: z.string(),
  agent: z.string().optional(),
  state: z.string(),
  endReason: z.string().nullish(),
  durationMs: z.number().nullish(),
  messages: z.array(
    z.object({
      msg: z.union([z.string(), z.number()]),
      role: z.enum(['user', 'model']),
      text: z.string(),
      interrupted: z.boolean().optional(),
    }),
  ),
});

export type CallView = z.infer<typeof callView>;

const VIEW_TIMEOUT_MS = 2_000;

/** Returns the view, or why there is none. */
export async function fetchCallView(
  url: string,
  callSid: string,
  token: string | undefined,
): Promise<CallView | { readonly missing: string }> {
  try {
    const response = await fetch(`${url}/calls/${encodeURIComponent(callSid)}`, {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(VIEW_TIMEOUT_MS),
      redirect: 'error',
    });
    if (response.status === 401) return { missing: 'the server wants CONSOLE_TOKEN' };
    if (!response.ok) return { missing: `the server answered HTTP ${response.status}` };
    const read = callView.safeParse(await response.json());
    return read.success ? read.data : { missing: 'the server answered something else than a call' };
  } catch {
    return { missing: 'the server did not answer' };
  }
}
