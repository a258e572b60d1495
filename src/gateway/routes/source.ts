import type { AgentRoute } from '../agent-route.ts';
import { problem } from '../answer.ts';

/** GET /v1/agent/jobs/:id/source -> 409: no kind of job that there is has a source, so nobody holds one. */
export const source: AgentRoute<undefined> = {
  name: 'source',
  body: undefined,
  handle: () => problem('lease_conflict'),
};
