import type { PkiPaths } from '../src/pki/files.ts';
import { nodeLocker } from '../src/provisioning/node-lock.ts';
import type { RotationOutcome } from '../src/rotation/outcome.ts';
import type { RotationPorts } from '../src/rotation/ports.ts';
import { systemPorts } from '../src/rotation/system-ports.ts';
import type { AppendedEvent } from '../src/transactor/command.ts';
import { type FleetChoice, operatorActor } from './connection.ts';
import { EXIT } from './exit-code.ts';
import { Failure, refusalFailure, usageFailure } from './failure.ts';
import { OperatorCommand } from './operator-command.ts';
import { namedPki } from './pki-paths.ts';

/** What a phase did: what --json prints. */
export interface PhaseReport {
  readonly changed: boolean;
  readonly events: readonly AppendedEvent[];
  readonly files: readonly string[];
}

/** Base of the commands that change the CA's files on a gateway's host, one at a time in the whole fleet. */
export abstract class CaCommand extends OperatorCommand {
  /** Runs a phase under the lock. Throws why it was refused or could not go on, as a {@link Failure}. */
  protected async runPhase(
    flags: FleetChoice,
    phase: (ports: RotationPorts) => Promise<RotationOutcome>,
  ): Promise<PhaseReport> {
    const { variables, databaseUrl } = await this.environment(flags);
    const paths = await this.pkiPaths(flags);
    const actor = operatorActor(variables);
    const events: AppendedEvent[] = [];
    const say: RotationPorts['say'] = (line, appended = []) => {
      events.push(...appended);
      const told = appended.map(({ type, position }) => `${type} at ${position}`).join(', ');
      this.log('%s', told === '' ? line : `${line} (${told})`);
    };
    const before = await this.#lock(databaseUrl, `ca ${actor.id}`);
    const pool = await this.pool(flags);
    const ports = systemPorts({ paths, pool, transactor: await this.transactor(flags), actor, say, before });
    const outcome = await phase(ports);
    if (outcome.kind === 'refused') {
      throw withNodes(refusalFailure(outcome.refusal), outcome.refusal.details['nodes']);
    }
    for (const file of ports.files.changed) this.log('%s', `changed ${file}`);
    if (!outcome.changed) this.log('nothing to do: this host is where the log says');
    return { changed: outcome.changed, events, files: ports.files.changed };
  }

  /** Locks the CA of the fleet until the command ends. Answers what to ask before each step: without the lock somebody else may be at the same files. */
  async #lock(databaseUrl: string, program: string): Promise<() => void> {
    const locked = await nodeLocker({ url: databaseUrl, program })('ca-fleet');
    if (!locked.ok) {
      throw new Failure(EXIT.refused, 'ca_locked', `somebody works on the CA: ${locked.holder}`, {
        remedy: 'wait until that is done, and run this again',
      });
    }
    this.onEnd(() => locked.lock.release());
    return () => {
      if (!locked.lock.lost.aborted) return;
      throw new Failure(EXIT.unavailable, 'lock_lost', 'the database session that held the lock of the CA is lost', {
        remedy: 'run this again: it goes on where it stopped',
      });
    };
  }

  /** The files of this host's gateway. Throws a usage failure that names the variable that is missing. */
  protected async pkiPaths(flags: FleetChoice): Promise<PkiPaths> {
    const named = await namedPki(flags);
    if (named.ok) return named.paths;
    throw usageFailure(`${named.missing} is not set`, 'run this with the variables of the gateway');
  }
}

/** A completion that is refused names each node with its reason. */
export function withNodes(failure: Failure, nodes: unknown): Failure {
  if (!Array.isArray(nodes) || nodes.length === 0) return failure;
  const { exitCode, code, message, remedy, details } = failure;
  return new Failure(exitCode, code, `${message}: ${nodes.join('; ')}`, {
    ...(remedy === undefined ? {} : { remedy }),
    details,
  });
}
