import { expect, test } from 'vitest';
import { sweep } from '../../src/scheduler/sweep.ts';
import { runWorkloads } from '../../src/scheduler/workloads/workloads.ts';
import { Transactor } from '../../src/transactor/transactor.ts';
import { createTestDatabase } from '../support/database.ts';
import { work } from './agents.ts';
import { hear, populate } from './populate.ts';

const THRESHOLDS = { unhealthyAfterMs: 90_000, lostAfterMs: 300_000 };
const INSTANCES_PER_NODE = 10;

/** What a loss cost: how long until everything ran again, and the commands that it took. */
interface Measured {
  readonly nodes: number;
  readonly seconds: number;
  readonly commands: number;
}

/** A twentieth of a fleet falls silent at once; scheduler and agents go on until every instance runs again. */
async function loseTwentieth(nodes: number): Promise<Measured> {
  const database = await createTestDatabase();
  const transactor = new Transactor({ url: database.url, program: 'simulation', programVersion: '0.0.0' });
  let commands = 0;
  const counting = {
    execute: (...given: Parameters<Transactor['execute']>) => {
      commands += 1;
      return transactor.execute(...given);
    },
  } as Transactor;
  try {
    const instancesPerDeployment = 100;
    const deployments = (nodes * INSTANCES_PER_NODE) / instancesPerDeployment;
    const size = { nodes, ingressHosts: nodes / 50, deployments, instancesPerDeployment };
    const { nodeIds, fingerprints } = await populate(database.pool, transactor, size);
    await database.pool.query('VACUUM ANALYZE');
    const silent = new Set(nodeIds.slice(-nodes / 20));
    const heard = nodeIds.filter((id) => !silent.has(id));
    await database.pool.query('UPDATE telemetry.scheduler SET heard_ms = heard_ms + 310000');
    await hear(database.pool, heard);
    const led = { transactor: counting, actor: { kind: 'scheduler', id: 'simulation' }, term: 1 } as const;
    const agents = new Map(heard.map((id) => [id, fingerprints.get(id) ?? '']));
    const startedAt = performance.now();
    await sweep(database.pool, led, THRESHOLDS);
    for (let round = 0; round < 30; round += 1) {
      await runWorkloads(database.pool, led);
      if ((await work(counting, agents)) === 0) break;
    }
    const seconds = (performance.now() - startedAt) / 1_000;
    expect(await countsOf(database.pool)).toEqual({
      lost_nodes: silent.size,
      lost: silent.size * INSTANCES_PER_NODE,
      ready: nodes * INSTANCES_PER_NODE,
      second: silent.size * INSTANCES_PER_NODE,
      live: deployments,
      stale: 0,
    });
    return { nodes, seconds, commands };
  } finally {
    await transactor.close();
    await database.drop();
  }
}

/** `stale`: active routes that lead to an instance which does not run. */
async function countsOf(pool: Awaited<ReturnType<typeof createTestDatabase>>['pool']) {
  const { rows } = await pool.query(`
    SELECT (SELECT count(*)::int FROM fleet.fleet_nodes WHERE status = 'lost') AS lost_nodes,
           (SELECT count(*)::int FROM fleet.application_instances WHERE status = 'lost') AS lost,
           (SELECT count(*)::int FROM fleet.application_instances WHERE status = 'ready') AS ready,
           (SELECT count(*)::int FROM fleet.application_instances WHERE status = 'ready' AND generation = 2) AS second,
           (SELECT count(*)::int FROM fleet.deployments WHERE status = 'live') AS live,
           (SELECT count(*)::int FROM fleet.ingress_routes r
            WHERE r.status = 'active' AND EXISTS (
              SELECT 1 FROM fleet.application_instances i WHERE r.instance_ids @> to_jsonb(i.instance_id) AND i.status <> 'ready'
                AND i.deployment_id = r.deployment_id)) AS stale`);
  return rows[0];
}

test('2,000 nodes with 20,000 instances, of which a twentieth is lost at once: everything runs again, and four times the fleet takes no more than 1.3 times four times as long', async () => {
  const warm = await loseTwentieth(100);
  const small = await loseTwentieth(500);
  const large = await loseTwentieth(2_000);
  const growth = large.seconds / small.seconds / (large.nodes / small.nodes);
  const rate = large.commands / large.seconds;
  console.info(JSON.stringify({ warm, small, large, commands_per_second: Math.round(rate), growth }));
  expect(growth).toBeLessThanOrEqual(1.3);
});
