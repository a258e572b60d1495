import { Command, Flags } from '@oclif/core';
import type pg from 'pg';
import { ok, type Result } from '../src/domain/result.ts';
import type { FleetView } from '../src/read/fleet-view.ts';
import type { CommandDefinition } from '../src/transactor/command.ts';
import { type DryRun, dryRun } from '../src/transactor/dry-run.ts';
import type { Transactor } from '../src/transactor/transactor.ts';
import type { Audience } from '../src/up/environment-files.ts';
import { type FleetChoice, findFleet, type OperatorEnvironment, openPool, operatorActor } from './connection.ts';
import { deadDatabase } from './dead-database.ts';
import { EXIT } from './exit-code.ts';
import { asFailure, Failure, refusalFailure } from './failure.ts';
import type { Done } from './output/outcome.ts';

/** Says what a changing command would do, without doing it. */
export const dryRunFlag = Flags.boolean({ summary: 'Say what would be done, and do nothing.' });

/** Flags of a command that changes something. */
type ChangeFlags = FleetChoice & { readonly 'dry-run'?: boolean };

/**
 * Base of every command: finds the fleet, ends with one line and the right exit code whatever goes wrong, and closes what it opened.
 * A command's `run` prints for people with `log` and returns the document that --json prints.
 */
export abstract class OperatorCommand extends Command {
  static override enableJsonFlag = true;
  static override baseFlags = {
    'state-dir': Flags.string({
      summary: "A local fleet's state directory [default: the nearest .pushleft upwards].",
      helpGroup: 'GLOBAL',
      helpValue: 'DIR',
    }),
    'database-url': Flags.string({
      summary: "The fleet's database; DATABASE_URL keeps its password out of the process list.",
      helpGroup: 'GLOBAL',
      helpValue: 'URL',
    }),
  };

  /** Whose variables complete the environment, where `up` wrote some. */
  protected readonly audience: Audience = 'operator';
  readonly #closing: (() => Promise<unknown>)[] = [];
  #environment: OperatorEnvironment | undefined;
  #pool: pg.Pool | undefined;
  #transactor: Transactor | undefined;

  /** The fleet that the flags, the environment and the folder one stands in choose. */
  protected async environment(flags: FleetChoice): Promise<OperatorEnvironment> {
    this.#environment ??= await findFleet(flags, process.env, process.cwd(), this.audience);
    return this.#environment;
  }

  /** A pool for reading; closed when the command ends. */
  protected async pool(flags: FleetChoice): Promise<pg.Pool> {
    if (this.#pool !== undefined) return this.#pool;
    const pool = openPool((await this.environment(flags)).databaseUrl, this.programName());
    this.#pool = pool;
    this.#closing.push(() => pool.end());
    return pool;
  }

  /** Shows the fleet to `look`: as it is, or as it was at the moment of --at. */
  protected async view<T>(
    flags: FleetChoice & { at?: string | undefined },
    look: (view: FleetView) => Promise<T>,
  ): Promise<T> {
    const { viewFleet } = await import('../src/read/view-fleet.ts');
    const viewed = await viewFleet(await this.pool(flags), flags.at, look);
    if (!viewed.ok) throw new Failure(EXIT.usage, 'usage', viewed.problem);
    return viewed.value;
  }

  /** Gives one command to the transactor, or with --dry-run only decides it. Throws the refusal as a {@link Failure}. */
  protected async decide<C, S>(definition: CommandDefinition<C, S>, command: C, flags: ChangeFlags): Promise<Done> {
    const decided = await this.attempt(definition, command, flags);
    if (!decided.ok) throw refusalFailure(decided.refusal);
    return decided.value;
  }

  /** As {@link decide}, for commands that go on after a refusal. */
  protected async attempt<C, S>(
    definition: CommandDefinition<C, S>,
    command: C,
    flags: ChangeFlags,
  ): Promise<Result<Done>> {
    const { variables } = await this.environment(flags);
    const actor = operatorActor(variables);
    if (flags['dry-run'] === true) return forecast(await dryRun(await this.pool(flags), definition, command));
    const transactor = await this.transactor(flags);
    const outcome = await transactor.execute(definition, command, { actor });
    return outcome.ok ? ok({ dryRun: false, events: outcome.events, reply: outcome.reply }) : outcome;
  }

  /** The transactor of this command; closed when it ends. */
  protected async transactor(flags: FleetChoice): Promise<Transactor> {
    if (this.#transactor !== undefined) return this.#transactor;
    const { Transactor } = await import('../src/transactor/transactor.ts');
    const { databaseUrl } = await this.environment(flags);
    const transactor = new Transactor({
      url: databaseUrl,
      program: this.programName(),
      programVersion: this.config.version,
    });
    this.#transactor = transactor;
    this.#closing.push(() => transactor.close());
    return transactor;
  }

  /** Registers what has to be closed when the command ends, in any way. */
  protected onEnd(close: () => Promise<unknown>): void {
    this.#closing.push(close);
  }

  /** Prints lines for people; nothing with --json. */
  protected logLines(lines: readonly string[]): void {
    for (const line of lines) this.log('%s', line);
  }

  protected programName(): string {
    return `cli ${this.id?.replaceAll(':', ' ') ?? ''}`;
  }

  /** As {@link asFailure}, with what is known of the fleet that this command found. */
  protected async explain(error: unknown): Promise<Failure | undefined> {
    const failure = asFailure(error);
    // Of a command that may have taken effect, that is what has to be said.
    if (failure?.code !== 'database') return failure;
    return (await deadDatabase(error, this.#environment?.stateDir)) ?? failure;
  }

  protected override async catch(error: Error): Promise<void> {
    const failure = await this.explain(error);
    // A fault of ours: oclif prints its stack, and the code says that it was not the operator's.
    if (failure === undefined) {
      process.exitCode = EXIT.unavailable;
      if (!this.jsonEnabled()) {
        process.stderr.write(`${error.stack ?? error.message}\n`);
        return;
      }
    } else process.exitCode = failure.exitCode;
    const { code, message, remedy, details } = failure ?? { code: 'fault', message: error.message, details: {} };
    if (this.jsonEnabled()) this.logJson({ error: { code, message, remedy: remedy ?? null, details } });
    else {
      process.stderr.write(`${this.config.bin}: ${message}\n`);
      if (remedy !== undefined) process.stderr.write(`  ${remedy}\n`);
    }
  }

  protected override async finally(): Promise<void> {
    for (const close of this.#closing.toReversed()) await close().catch(() => undefined);
  }
}

function forecast(decided: DryRun): Result<Done> {
  if (!decided.ok) return decided;
  const events = decided.wouldAppend.map((type) => ({ position: null, type }));
  return ok({ dryRun: true, events, reply: decided.reply });
}
