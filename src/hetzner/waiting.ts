import type { HetznerApi, HetznerClock } from './api.ts';
import type { Action } from './resources.ts';

/** How a wait goes: the first pause between looks (it grows to 5 s, for the rate limit counts looks) and the end of patience, ms. */
export interface Waiting {
  readonly clock: HetznerClock;
  readonly pollMs: number;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** The waits of real servers: they boot within a minute, as a rule. */
export const DEFAULT_WAITS = { pollMs: 1_000, timeoutMs: 300_000 } as const;

const LONGEST_POLL_MS = 5_000;

/** Asks `look` until it gives an answer; undefined when it has none in time. It looks once more at the very end. */
export async function pollUntil<T>(
  look: () => Promise<T | undefined>,
  { clock, pollMs, timeoutMs, signal }: Waiting,
): Promise<T | undefined> {
  const deadline = clock.now() + timeoutMs;
  for (let pause = pollMs; ; pause = Math.min(pause * 1.5, Math.max(pollMs, LONGEST_POLL_MS))) {
    const answer = await look();
    if (answer !== undefined) return answer;
    const left = deadline - clock.now();
    if (left <= 0) return undefined;
    await clock.sleep(Math.min(pause, left), signal);
  }
}

/** All succeeded, one failed, or some still ran when patience ended. */
export type ActionsOutcome =
  | { readonly state: 'succeeded' }
  | { readonly state: 'failed'; readonly action: Action }
  | { readonly state: 'pending'; readonly actions: readonly Action[] };

/** Waits for every action; ends at the first that fails. */
export async function awaitActions(
  api: HetznerApi,
  actions: readonly Action[],
  waiting: Waiting,
): Promise<ActionsOutcome> {
  let known = actions;
  const outcome = await pollUntil<ActionsOutcome>(async () => {
    const settled = settle(known);
    if (settled !== undefined) return settled;
    const running = known.filter((action) => action.status === 'running').map((action) => action.id);
    const fresh = new Map((await api.getActions(running)).map((action) => [action.id, action]));
    known = known.map((action) => fresh.get(action.id) ?? action);
    return settle(known);
  }, waiting);
  return outcome ?? { state: 'pending', actions: known.filter((action) => action.status === 'running') };
}

function settle(actions: readonly Action[]): ActionsOutcome | undefined {
  const failed = actions.find((action) => action.status === 'error');
  if (failed !== undefined) return { state: 'failed', action: failed };
  return actions.every((action) => action.status === 'success') ? { state: 'succeeded' } : undefined;
}

/** An action for people: its command and id, and why it failed. */
export function describeAction({ id, command, error }: Action): string {
  return error === null ? `${command} (action ${id})` : `${command} (action ${id}: ${error.code}, ${error.message})`;
}
