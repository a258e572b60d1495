import type { AgentRoute } from '../agent-route.ts';
import { problem } from '../answer.ts';

/** Anything else -> 404, for those who are known; the others get their 401 here too. */
export const notFound: AgentRoute<undefined> = { name: 'other', body: undefined, handle: () => problem('not_found') };
