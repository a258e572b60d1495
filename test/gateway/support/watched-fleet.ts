import { createPool, READER_LIMITS } from '../../../src/database/connect.ts';
import type { EventType } from '../../../src/domain/event/catalogue.ts';
import { nodeStream } from '../../../src/domain/stream.ts';
import { Leadership } from '../../../src/scheduler/leader.ts';
import { SilenceClock } from '../../../src/scheduler/silence-clock.ts';
import { sweep } from '../../../src/scheduler/sweep.ts';
import { waitFor } from '../../support/wait-for.ts';
import { AgentClient } from './client.ts';
import { type Entrance, openEntrance } from './entrance.ts';
import { NO_LIMITS, startFleet, type TestAgent, type TestFleet } from './fleet.ts';
import { type ManualTicker, manualTicker } from './manual-ticker.ts';
import { appendCommand } from './renewal.ts';

const SECOND = 1_000;
/** Time between two passes of the scheduler here. */
export const PASS_MS = 5 * SECOND;
const LIMITS = { mostMs: 8 * SECOND };
const THRESHOLDS = { unhealthyAfterMs: 90 * SECOND, lostAfterMs: 300 * SECOND };
/** What may happen to a node because it is silent. */
const OF_SILENCE: readonly EventType[] = [
  'node_became_unhealthy',
  'node_recovered',
  'node_lost',
  'node_loss_held',
  'node_loss_released',
];

/** An agent that asks for work at each pass, unless it is dead or nobody lets it in. */
export interface WatchedAgent {
  readonly nodeId: string;
  alive: boolean;
  /** The status that its last request was answered with; undefined where nobody answered. */
  answered: number | undefined;
}

/**
 * A real gateway and its real agents on a real database, and a scheduler that counts and sweeps, in time that passes when the test says:
 * between two passes every agent asks for work and the gateway writes what it heard.
 */
export class WatchedFleet implements AsyncDisposable {
  readonly fleet: TestFleet;
  readonly entrance: Entrance;
  readonly #ticks: ManualTicker;
  readonly #time: { nowMs: number };
  #leader!: { leadership: Leadership; clock: SilenceClock; term: number };
  #agents: (WatchedAgent & { readonly client: AgentClient })[] = [];
  #after = 0;
  /** The gateway writes nothing while this is false. */
  writes = true;

  private constructor(fleet: TestFleet, entrance: Entrance, ticks: ManualTicker, time: { nowMs: number }) {
    this.fleet = fleet;
    this.entrance = entrance;
    this.#ticks = ticks;
    this.#time = time;
  }

  static async start(): Promise<WatchedFleet> {
    const [entrance, ticks, time] = [await openEntrance(), manualTicker(), { nowMs: 1_000_000 }];
    const env = { PUSHLEFT_GATEWAY_PROBE_ADDRESS: `127.0.0.1:${entrance.port}` };
    const fleet = await startFleet(env, NO_LIMITS, (url) => url, undefined, {
      ticker: ticks.ticker,
      now: () => time.nowMs,
    });
    entrance.leadTo(fleet.gateway.agentUrl);
    const watched = new WatchedFleet(fleet, entrance, ticks, time);
    await watched.lead();
    return watched;
  }

  /** Agents of new nodes; those of before leave the fleet. Everything is well from here on. */
  async agents(count: number): Promise<WatchedAgent[]> {
    await this.pass();
    for (const { nodeId, client } of this.#agents) {
      client[Symbol.dispose]();
      const retired = { type: 'node_retired', data: { node_id: nodeId } } as const;
      await this.fleet.operate(appendCommand, { stream: nodeStream(nodeId), events: [retired] });
    }
    const identities = await Promise.all(Array.from({ length: count }, () => this.fleet.agent()));
    this.#agents = identities.map((identity) => ({
      nodeId: identity.nodeId,
      alive: true,
      answered: undefined,
      client: this.#client(identity),
    }));
    await this.passFor(3 * PASS_MS);
    this.#after = await this.#head();
    return this.#agents;
  }

  /** A pass each {@link PASS_MS} for so long; ends early when `until` says so. Answers how long it took. */
  async passFor(ms: number, until: () => Promise<boolean> = () => Promise.resolve(false)): Promise<number> {
    for (let passed = 0; passed < ms; passed += PASS_MS) {
      if (await until()) return passed;
      await this.pass();
    }
    return ms;
  }

  /** Agents ask, the gateway writes, the scheduler counts and sweeps. */
  async pass(): Promise<void> {
    this.#time.nowMs += PASS_MS;
    await this.#ask();
    // Twice, as it has to find out by the second whether it is reached.
    if (this.writes) for (const _ of [1, 2]) await this.#ticks.tick();
    const { clock, term } = this.#leader;
    await clock.pass(term);
    const led = { transactor: this.fleet.operator, actor: { kind: 'scheduler', id: 'test' }, term } as const;
    const { pools, nodes } = await sweep(this.fleet.database.pool, led, THRESHOLDS);
    for (const { error } of [...pools.failed, ...nodes.failed]) throw error;
  }

  /** The gateway begins to write what it heard; resolves when it has, or has given up. */
  write(): Promise<void> {
    return this.#ticks.tick();
  }

  /** Time in which nobody leads: the scheduler is away. Agents and gateway go on. */
  async withoutLeader(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += PASS_MS) {
      this.#time.nowMs += PASS_MS;
      await this.#ask();
      await this.#ticks.tick();
    }
  }

  /** Another scheduler begins a term, with a clock that remembers nothing. */
  async lead(): Promise<void> {
    await this.#leader?.leadership.close();
    const { url, pool } = this.fleet.database;
    const connection = { url, program: 'test', limits: READER_LIMITS };
    const leadership = new Leadership({ connection, holder: 'test', idleMs: 60_000 });
    const term = await waitFor(() => leadership.check(), { what: 'the test leads' });
    this.#leader = { leadership, clock: new SilenceClock(pool, LIMITS, () => this.#time.nowMs), term };
  }

  /** What has happened to nodes because of silence since the agents came: type and node, oldest first. */
  async transitions(): Promise<(readonly [EventType, string | null])[]> {
    const { rows } = await this.fleet.database.pool.query<{ type: EventType; node_id: string | null }>(
      'SELECT type, node_id FROM fleet.fleet_events WHERE position > $1 AND type = ANY($2) ORDER BY position',
      [this.#after, OF_SILENCE],
    );
    return rows.map(({ type, node_id }) => [type, node_id]);
  }

  async isLost({ nodeId }: WatchedAgent): Promise<boolean> {
    return (await this.transitions()).some(([type, node]) => type === 'node_lost' && node === nodeId);
  }

  /** Runs statements on a connection of its own, and answers how to end what they began. */
  async hold(text: string): Promise<() => Promise<void>> {
    const pool = createPool({ url: this.fleet.database.url, program: 'holder', limits: READER_LIMITS, max: 1 });
    const client = await pool.connect();
    await client.query('BEGIN');
    await client.query(text);
    return async () => {
      await client.query('ROLLBACK');
      client.release();
      await pool.end();
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { client } of this.#agents) client[Symbol.dispose]();
    await this.#leader.leadership.close();
    await this.fleet[Symbol.asyncDispose]();
    await this.entrance[Symbol.asyncDispose]();
  }

  async #ask(): Promise<void> {
    const asking = this.#agents.map(async (agent) => {
      if (agent.alive) agent.answered = (await agent.client.lease().catch(() => undefined))?.status;
    });
    await Promise.all(asking);
  }

  #client(identity: TestAgent): AgentClient {
    return new AgentClient(`https://127.0.0.1:${this.entrance.port}`, identity);
  }

  async #head(): Promise<number> {
    const { rows } = await this.fleet.database.pool.query<{ head: number }>(
      'SELECT max(position) AS head FROM log.events',
    );
    return rows[0]?.head ?? 0;
  }
}
