import type { AgentRoute } from '../agent-route.ts';
import { success } from '../answer.ts';

/** GET /healthz -> 200 for a certificate in force: with a new one, an agent tries it out here before it lets go of the old one. */
export const healthz: AgentRoute<undefined> = {
  name: 'healthz',
  body: undefined,
  handle: () => success({ status: 'ok' }),
};
