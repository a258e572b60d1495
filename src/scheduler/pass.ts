import type { InTerm } from '../commands/term.ts';
import type { Refusal } from '../domain/result.ts';
import type { CommandActor, CommandDefinition, CommandOutcome } from '../transactor/command.ts';
import type { Transactor } from '../transactor/transactor.ts';

/** Who gives a pass's commands, and in which term. */
export interface Led {
  readonly transactor: Pick<Transactor, 'execute'>;
  readonly actor: CommandActor;
  readonly term: number;
}

/** A command that could not be decided: which one, and why. */
export interface Failed<C> {
  readonly command: C;
  readonly error: unknown;
}

/** What became of a pass's commands: those that changed something, those that were refused (next time, or somebody was faster), and those that failed. */
export interface PassReport<C = unknown> {
  readonly done: number;
  readonly refused: readonly { readonly command: C; readonly refusal: Refusal }[];
  readonly failed: readonly Failed<C>[];
}

/**
 * Gives commands in a term, all at once, so that they share batches. One that fails stops no other. Resolves when all were decided;
 * never rejects.
 */
export async function giveAll<C, S>(
  { transactor, actor, term }: Led,
  definition: CommandDefinition<InTerm<C>, S>,
  commands: readonly C[],
): Promise<PassReport<C>> {
  const settled = await Promise.allSettled(
    commands.map((command) => transactor.execute(definition, { ...command, term }, { actor })),
  );
  const outcomes = settled.map((result, i) => ({ command: commands[i] as C, result }));
  return {
    done: outcomes.filter(({ result }) => result.status === 'fulfilled' && changed(result.value)).length,
    refused: outcomes.flatMap(({ command, result }) =>
      result.status === 'fulfilled' && !result.value.ok ? [{ command, refusal: result.value.refusal }] : [],
    ),
    failed: outcomes.flatMap(({ command, result }) =>
      result.status === 'rejected' ? [{ command, error: result.reason as unknown }] : [],
    ),
  };
}

/**
 * As {@link giveAll}, of commands that have to be made first. One that cannot be made has failed, and stops no other: what is wrong with one
 * deployment must not end the work for all.
 */
export async function giveMade<R, C, S>(
  led: Led,
  definition: CommandDefinition<InTerm<C>, S>,
  rows: readonly R[],
  make: (row: R) => C | undefined,
): Promise<PassReport<C | R>> {
  const commands: C[] = [];
  const failed: Failed<R>[] = [];
  for (const row of rows) {
    try {
      const command = make(row);
      if (command !== undefined) commands.push(command);
    } catch (error) {
      failed.push({ command: row, error });
    }
  }
  const report = await giveAll(led, definition, commands);
  return { ...report, failed: [...failed, ...report.failed] };
}

function changed(outcome: CommandOutcome): boolean {
  return outcome.ok && outcome.events.length > 0;
}
