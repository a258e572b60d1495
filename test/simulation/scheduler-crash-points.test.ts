import { expect, test } from 'vitest';
import { removeDeploymentCommand } from '../../src/commands/deployment.ts';
import { startDrainCommand } from '../../src/commands/node-exit.ts';
import type { Led } from '../../src/scheduler/pass.ts';
import { PassingFleet, WEB } from '../scheduler/support/passing-fleet.ts';

const INGRESS_ONLY = { ingress: true, capacity: { cpu_millis: 0, memory_mb: 0, disk_gb: 0 } };
const ROUNDS = 12;

/** Something that the scheduler sees to its end: what there is before, and what sets it going. Both may sweep with the leader's means. */
interface Workflow {
  readonly name: string;
  /** How many commands the scheduler gives; each is a point to be cut off at. */
  readonly commands: number;
  readonly prepare: (fleet: PassingFleet) => Promise<void>;
  readonly begin: (fleet: PassingFleet) => Promise<void>;
}

async function twoNodes(fleet: PassingFleet): Promise<void> {
  await fleet.addNodes({}, {}, INGRESS_ONLY);
}

async function running(fleet: PassingFleet): Promise<void> {
  await fleet.addNodes({}, INGRESS_ONLY);
  await fleet.deploy({ roles: [{ ...WEB, count: 2 }] });
  await fleet.settle();
  await fleet.addNodes({});
}

const firstNode = async (fleet: PassingFleet) => {
  const { rows } = await fleet.database.pool.query<{ node_id: string; deployment_id: string }>(
    `SELECT node_id, deployment_id FROM fleet.application_instances WHERE status = 'ready' ORDER BY instance_id LIMIT 1`,
  );
  return rows[0] ?? { node_id: '', deployment_id: '' };
};

const WORKFLOWS: readonly Workflow[] = [
  {
    name: 'a deployment becomes live',
    commands: 6,
    prepare: twoNodes,
    begin: async (fleet) => void (await fleet.deploy({ roles: [{ ...WEB, count: 2 }] })),
  },
  {
    name: 'a node is lost: its instances are replaced, its hostname follows',
    commands: 6,
    prepare: running,
    async begin(fleet) {
      fleet.silent.add((await firstNode(fleet)).node_id);
      await fleet.pass(310_000);
    },
  },
  {
    name: 'a node is drained with migration',
    commands: 9,
    prepare: running,
    async begin(fleet) {
      const { node_id } = await firstNode(fleet);
      await fleet.give(startDrainCommand, { node_id, migrate: true, max_in_flight: 2, deadline_at: null });
    },
  },
  {
    name: 'a deployment is removed',
    commands: 4,
    prepare: running,
    async begin(fleet) {
      const { deployment_id } = await firstNode(fleet);
      await fleet.give(removeDeploymentCommand, { deployment_id });
    },
  },
];

/** A leader that dies after so many commands: those after it are given by nobody. */
class Killed extends Error {}

/** Passes and agents in turn, through a leader that dies at `cut`; another one takes over. Answers how many commands the first one gave that changed something. */
async function run(fleet: PassingFleet, cut: number): Promise<number> {
  let given = 0;
  // One after the other, so that each is a point of its own.
  let turn: Promise<unknown> = Promise.resolve();
  const dying: Led['transactor']['execute'] = (definition, command, options) => {
    const decided = turn.then(async () => {
      if (given >= cut) throw new Killed('the leader is gone');
      const outcome = await fleet.transactor.execute(definition, command, options);
      if (outcome.ok && outcome.events.length > 0) given += 1;
      return outcome;
    });
    turn = decided.catch(() => undefined);
    return decided;
  };
  const rounds = async (led: () => Led) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      await fleet.sweep(led());
      await fleet.workloads(led());
      await fleet.work();
    }
  };
  await rounds(() => fleet.led(dying)).catch((error: unknown) => {
    if (!(error instanceof Killed)) throw error;
  });
  await fleet.lead();
  await rounds(() => fleet.led());
  return given;
}

/** Everything that a workflow may have changed, without the ids of what was made on the way. */
async function stateOf(fleet: PassingFleet) {
  const { rows: held } = await fleet.database.pool.query<{ held: string }>(
    `SELECT kind || ' ' || count(*) AS held FROM fleet.fleet_allocations WHERE released_at IS NULL GROUP BY kind ORDER BY 1`,
  );
  const { rows: deployments } = await fleet.database.pool.query('SELECT status FROM fleet.deployments');
  const { rows: open } = await fleet.database.pool.query(
    `SELECT kind FROM fleet.jobs WHERE status IN ('queued', 'leased') ORDER BY 1`,
  );
  return { instances: await fleet.instances(), routes: await fleet.routes(), held, deployments, open };
}

test.each(WORKFLOWS)(
  '$name, its leader killed before each command: another one ends it in the same state',
  async ({ name, commands, prepare, begin }) => {
    const final = async (cut: number) => {
      await using fleet = await PassingFleet.start();
      await prepare(fleet);
      await begin(fleet);
      const given = await run(fleet, cut);
      return { given, state: await stateOf(fleet) };
    };
    const uncut = await final(Number.POSITIVE_INFINITY);
    console.info(`${name}: ${uncut.given} commands`);
    expect(uncut.given).toBe(commands);
    for (let cut = 0; cut < uncut.given; cut += 1) {
      const { given, state } = await final(cut);
      expect([cut, given, state]).toEqual([cut, cut, uncut.state]);
    }
  },
);
