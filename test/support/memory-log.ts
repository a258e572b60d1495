import type { Decision, DecisionTime } from '../../src/domain/decision.ts';
import type { FleetEvent, NewEvent } from '../../src/domain/event/catalogue.ts';
import { GENESIS_HASH } from '../../src/log/chain.ts';
import { seal } from '../../src/log/codec.ts';
import type { LogHead } from '../../src/log/event-log.ts';
import type { CommandDefinition } from '../../src/transactor/command.ts';
import { METADATA } from './given.ts';
import { MemoryRows } from './memory-rows.ts';

/** A log in memory with the tables that follow from it: commands are decided by the real decisions on the real folds. */
export class MemoryLog {
  readonly rows = new MemoryRows();
  readonly events: FleetEvent[] = [];
  #head: LogHead = { position: 0, hash: GENESIS_HASH, at: 0 };

  /** Decides a command and records what it appends, also by being refused. */
  async decide<C, S>(definition: CommandDefinition<C, S>, command: C, time: DecisionTime): Promise<Decision> {
    const decision = definition.decide(command, await definition.load(this.rows, command), time);
    this.record('refusal' in decision ? (decision.record ?? []) : decision.events, time.at);
    if ('bodies' in decision) {
      for (const { role, jobId: job_id, sha256 } of decision.bodies) {
        if (role === 'payload') this.rows.putPayload({ job_id, sha256 });
      }
    }
    return decision;
  }

  /** Records events at a time, ms. */
  record(events: readonly NewEvent[], at: number): void {
    for (const { event, hash } of seal(this.#head, events, METADATA, at)) {
      this.rows.apply(event);
      this.#head = { position: event.position, hash, at: event.at };
    }
    this.events.push(...events.map(({ event }) => event));
  }
}
