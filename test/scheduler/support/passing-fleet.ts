import { randomUUID } from 'node:crypto';
import { deployCommand } from '../../../src/commands/deployment.ts';
import type { EventData, NewEvent } from '../../../src/domain/event/catalogue.ts';
import { SCHEDULER } from '../../../src/domain/scheduler/state.ts';
import { postgresEventLog } from '../../../src/log/postgres/postgres-event-log.ts';
import type { Led } from '../../../src/scheduler/pass.ts';
import { sweep } from '../../../src/scheduler/sweep.ts';
import { runWorkloads } from '../../../src/scheduler/workloads/workloads.ts';
import type { CommandDefinition, CommandOutcome } from '../../../src/transactor/command.ts';
import { Transactor } from '../../../src/transactor/transactor.ts';
import { type Behaviour, work } from '../../simulation/agents.ts';
import { addNodes, hear, type NodeWish } from '../../simulation/populate.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { sample } from '../../support/events.ts';
import { recordEvents } from '../../support/record-events.ts';

type Deployment = EventData<'deployment_created'>;
type Role = Deployment['roles'][number];

const THRESHOLDS = { unhealthyAfterMs: 90_000, lostAfterMs: 300_000 };

/** A small web service under one hostname. */
export const WEB: Role = {
  ...(sample.deployment_created.data.roles[0] as Role),
  cpu_millis: 100,
  memory_mb: 100,
  disk_gb: 1,
};

/**
 * A fleet on a PostgreSQL of its own, in which the scheduler's passes are taken one by one and agents do their jobs when they are told
 * to: time, silence and who leads are the test's.
 */
export class PassingFleet implements AsyncDisposable {
  readonly database: TestDatabase;
  readonly transactor: Transactor;
  readonly fingerprints = new Map<string, string>();
  /** Nodes that nobody hears. */
  readonly silent = new Set<string>();
  /** Jobs that fail instead of being done. */
  refuses: Behaviour['refuses'] = () => false;
  #term = 1;

  private constructor(database: TestDatabase) {
    this.database = database;
    this.transactor = new Transactor({ url: database.url, program: 'test', programVersion: '0.0.0' });
  }

  static async start(): Promise<PassingFleet> {
    const fleet = new PassingFleet(await createTestDatabase());
    await fleet.database.pool.query(
      `INSERT INTO telemetry.scheduler (id, term, holder, heard_ms) VALUES ($1, 1, 'test', 1000000)`,
      [SCHEDULER],
    );
    return fleet;
  }

  /** Adds nodes that are admitted and were just heard; answers their ids. */
  async addNodes(...wishes: readonly NodeWish[]): Promise<string[]> {
    const added = await addNodes(this.database.pool, this.transactor, wishes);
    for (const [nodeId, fingerprint] of added) this.fingerprints.set(nodeId, fingerprint);
    return [...added.keys()];
  }

  /** Deploys; answers the deployment's id. */
  async deploy(wish: Partial<Deployment> = {}): Promise<string> {
    const deployment_id = randomUUID();
    const deployment = { ...sample.deployment_created.data, deployment_id, roles: [WEB], ...wish };
    const outcome = await this.give(deployCommand, { deployment, build: null });
    if (!outcome.ok) throw new Error(`not deployed: ${outcome.refusal.code}`);
    return deployment_id;
  }

  /** Time passes in which every node that is not silent is heard. */
  async pass(ms: number): Promise<void> {
    await this.database.pool.query('UPDATE telemetry.scheduler SET heard_ms = heard_ms + $1', [ms]);
    await hear(this.database.pool, this.#heard());
  }

  /** Another replica leads. */
  async lead(): Promise<void> {
    this.#term += 1;
    await this.database.pool.query('UPDATE telemetry.scheduler SET term = $1', [this.#term]);
  }

  /** The leader's means. `execute` stands between it and the transactor. */
  led(execute: Led['transactor']['execute'] = (...given) => this.transactor.execute(...given)): Led {
    return { transactor: { execute }, actor: { kind: 'scheduler', id: 'test' }, term: this.#term };
  }

  /** One pass about workloads, which reads so many rows at once. Throws what failed. */
  async workloads(led: Led = this.led(), page?: number): Promise<void> {
    const reports = await runWorkloads(this.database.pool, led, page);
    for (const { failed } of reports) for (const { error } of failed) throw error;
  }

  /** One sweep. Throws what failed. */
  async sweep(led: Led = this.led()): Promise<void> {
    const { pools, nodes } = await sweep(this.database.pool, led, THRESHOLDS);
    for (const { error } of [...pools.failed, ...nodes.failed]) throw error;
  }

  /** Agents that are heard do everything that there is for them. */
  work(): Promise<number> {
    const heard = new Map([...this.fingerprints].filter(([id]) => !this.silent.has(id)));
    return work(this.transactor, heard, { refuses: this.refuses, runsOnce: (id) => this.#runsOnce(id) });
  }

  /** Passes and agents in turn, until nothing is left to do. */
  async settle(): Promise<void> {
    for (let round = 0; round < 20; round += 1) {
      const before = await this.head();
      await this.workloads();
      await this.work();
      if ((await this.head()) === before) return;
    }
    throw new Error('the fleet does not come to rest');
  }

  /** A node falls silent, and is given up. */
  async lose(nodeId: string): Promise<void> {
    this.silent.add(nodeId);
    await this.pass(310_000);
    await this.sweep();
  }

  async head(): Promise<number> {
    return (await postgresEventLog(this.database.pool).head()).position;
  }

  /** Types of the events after a position. */
  async typesAfter(position: number): Promise<string[]> {
    const events = await postgresEventLog(this.database.pool).read({ after: position, limit: 100_000 });
    return events.map(({ event }) => event.type);
  }

  /** Where each instance is: `role.slot.generation status`, sorted. */
  async instances(): Promise<string[]> {
    const { rows } = await this.database.pool.query<{ instance: string }>(
      `SELECT role || '.' || slot || '.' || generation || ' ' || status AS instance FROM fleet.application_instances ORDER BY 1`,
    );
    return rows.map(({ instance }) => instance);
  }

  /** Where each route is: `hostname/generation status`, sorted. */
  async routes(): Promise<string[]> {
    const { rows } = await this.database.pool.query<{ route: string }>(
      `SELECT route_id || ' ' || status AS route FROM fleet.ingress_routes ORDER BY 1`,
    );
    return rows.map(({ route }) => route);
  }

  /** A deployment's status. */
  async status(deploymentId: string): Promise<string | undefined> {
    const { rows } = await this.database.pool.query<{ status: string }>(
      'SELECT status FROM fleet.deployments WHERE deployment_id = $1',
      [deploymentId],
    );
    return rows[0]?.status;
  }

  /** The node of an instance. */
  async nodeOf(deploymentId: string, instance: string): Promise<string> {
    const { rows } = await this.database.pool.query<{ node_id: string | null }>(
      'SELECT node_id FROM fleet.application_instances WHERE instance_id = $1',
      [`${deploymentId}.${instance}`],
    );
    return rows[0]?.node_id ?? '';
  }

  /** Records events as they are, at most a command's worth. */
  async record(events: readonly NewEvent[]): Promise<void> {
    await this.give(recordEvents, { events });
  }

  /** Gives a command as an operator. */
  give<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<CommandOutcome> {
    return this.transactor.execute(definition, command, { actor: { kind: 'operator', id: 'test' } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.transactor.close();
    await this.database.drop();
  }

  async #runsOnce(jobId: string): Promise<boolean> {
    const { rows } = await this.database.pool.query<{ run: string | null }>(
      `SELECT body::jsonb ->> 'run' AS run FROM telemetry.bodies WHERE job_id = $1 AND role = 'payload'`,
      [jobId],
    );
    return rows[0]?.run === 'once';
  }

  #heard(): string[] {
    return [...this.fingerprints.keys()].filter((id) => !this.silent.has(id));
  }
}
