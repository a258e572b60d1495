import type { Decision } from '../domain/decision.ts';
import { SCHEDULER, type SchedulerState } from '../domain/scheduler/state.ts';
import { refuseUnlessInTerm } from '../domain/scheduler/term.ts';
import type { CommandDefinition } from '../transactor/command.ts';

/** A scheduler's command: what is to be decided, and the term in which its giver leads. */
export type InTerm<C> = C & { readonly term: number };

/** The state of a scheduler's command: who leads now, and what the command itself is decided on. */
interface TermState<S> {
  readonly scheduler: SchedulerState | undefined;
  readonly state: S;
}

/**
 * Has a command carry the term of the scheduler that gives it. Under the lock it is refused (term_superseded) when another leads by then:
 * a leader that was stopped and comes back can do nothing with what it read before.
 */
export function underTerm<C, S>(definition: CommandDefinition<C, S>): CommandDefinition<InTerm<C>, TermState<S>> {
  return {
    name: definition.name,
    async load(rows, command) {
      const [scheduler, state] = await Promise.all([rows.get('scheduler', SCHEDULER), definition.load(rows, command)]);
      return { scheduler, state };
    },
    decide: ({ term, ...command }, { scheduler, state }, time): Decision =>
      refuseUnlessInTerm({ term }, scheduler) ?? definition.decide(command as C, state, time),
  };
}
