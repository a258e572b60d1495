import { type Decision, refuse } from '../decision.ts';
import type { SchedulerState } from './state.ts';

/**
 * Refuses a command that was given in a term which is over, or which telemetry does not know any more (term_superseded). Undefined: the
 * term is the one in which the fleet is led now.
 */
export function refuseUnlessInTerm(
  { term }: { readonly term: number },
  scheduler: Pick<SchedulerState, 'term'> | undefined,
): Decision | undefined {
  if (scheduler?.term === term) return undefined;
  return refuse('term_superseded', { term: scheduler?.term ?? null, given_term: term });
}
