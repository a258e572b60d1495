import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { publishRouteCommand, removeRouteCommand } from '../../commands/deployment.ts';
import { underTerm } from '../../commands/term.ts';
import { publishIngressJob } from '../../commands/workload-jobs.ts';
import { chooseIngressHost, type IngressHost } from '../../domain/ingress/choose-host.ts';
import { mayPublish, type PublishRoute, wantedInstances } from '../../domain/ingress/publish.ts';
import { SCHEDULER } from '../../domain/scheduler/state.ts';
import { FRESH_MS } from '../../domain/silence.ts';
import { EPOCH } from '../../log/epoch.ts';
import { instancesOfDeployment, routesOfHostname } from '../../transactor/finders.ts';
import { RowView } from '../../transactor/row-view.ts';
import { giveAll, giveMade, type Led, type PassReport } from '../pass.ts';
import { NodeQueues } from './node-queues.ts';
import { inPages } from './pages.ts';

const publishRoute = underTerm(publishRouteCommand);
const removeRoute = underTerm(removeRouteCommand);

/**
 * Hostnames whose every slot has an instance that is ready, and whose active route leads elsewhere or lies on a host that is out of
 * service, or that gives its hostnames away. Those with a route on its way wait for that.
 */
const UNSERVED = `
  SELECT d.deployment_id, h.hostname
  FROM fleet.deployments d
  CROSS JOIN LATERAL jsonb_array_elements_text(d.hostnames) AS h (hostname)
  CROSS JOIN LATERAL (
    SELECT (r ->> 'count')::integer AS wanted, r ->> 'role' AS role
    FROM jsonb_array_elements(d.roles) AS r WHERE (r ->> 'serves_hostnames')::boolean LIMIT 1
  ) s
  CROSS JOIN LATERAL (
    SELECT count(*) AS ready, coalesce(jsonb_agg(i.instance_id ORDER BY i.instance_id), '[]') AS ids
    FROM fleet.application_instances i
    WHERE i.deployment_id = d.deployment_id AND i.role = s.role AND i.status = 'ready'
  ) i
  LEFT JOIN fleet.ingress_routes a ON a.hostname = h.hostname AND a.status = 'active'
  LEFT JOIN fleet.fleet_nodes n ON n.node_id = a.node_id
  WHERE d.status IN ('deploying', 'live', 'degraded') AND i.ready = s.wanted
    AND NOT EXISTS (SELECT 1 FROM fleet.ingress_routes p WHERE p.hostname = h.hostname AND p.status = 'publishing')
    AND (a.route_id IS NULL OR n.status NOT IN ('active', 'unhealthy', 'draining') OR n.status IS NULL
         OR (n.status = 'draining' AND (n.drain ->> 'migrate')::boolean)
         OR NOT (a.instance_ids @> i.ids AND i.ids @> a.instance_ids))
    AND h.hostname <> ALL($1::text[])
  ORDER BY d.created_at, h.hostname LIMIT $2`;

interface Unserved {
  readonly deployment_id: string;
  readonly hostname: string;
}

/** Nodes that serve hostnames and take work, and how many each serves. */
const HOSTS = `
  SELECT n.node_id, n.pool, n.region,
         (SELECT count(*)::float8 FROM fleet.ingress_routes r
          WHERE r.node_id = n.node_id AND r.status IN ('active', 'publishing')) AS hostnames
  FROM fleet.fleet_nodes n
  JOIN telemetry.scheduler s ON s.id = $1
  JOIN telemetry.node_liveness l USING (node_id)
  WHERE n.status = 'active' AND n.ingress IS NOT NULL AND s.heard_ms - l.heard_ms <= $2
  ORDER BY n.node_id`;

/** What a pass published, and the deployments that have a hostname for which there is no host. */
export interface Published {
  readonly report: PassReport;
  readonly hostless: ReadonlySet<string>;
}

/** Points hostnames at the instances that are ready for them. */
export async function publishRoutes(pool: pg.Pool, led: Led, now: number, page: number): Promise<Published> {
  const hostless = new Set<string>();
  const report = await inPages<Unserved>(
    page,
    async (seen, limit) => {
      const values = [seen, limit];
      return (await pool.query<Unserved>({ name: 'unserved_hostnames', text: UNSERVED, values })).rows;
    },
    ({ hostname }) => hostname,
    async (rows) => {
      const prepared = await prepareAll(pool, rows, now);
      for (const { isHostless, deployment_id } of prepared) if (isHostless) hostless.add(deployment_id);
      return giveMade(led, publishRoute, prepared, ({ make }) => make?.());
    },
  );
  return { report, hostless };
}

/** What is to be done about a hostname. Nothing where it is not time yet, or where its host is behind with what it was asked for. */
interface Prepared {
  readonly deployment_id: string;
  readonly hostname: string;
  readonly isHostless: boolean;
  readonly make?: () => PublishRoute;
}

async function prepareAll(pool: pg.Pool, rows: readonly Unserved[], now: number): Promise<Prepared[]> {
  const { rows: hosts } = await pool.query<IngressHost>({
    name: 'ingress_hosts',
    text: HOSTS,
    values: [SCHEDULER, FRESH_MS],
  });
  const nodeIds = hosts.map(({ node_id }) => node_id);
  const queues = await NodeQueues.read(pool, nodeIds);
  const view = new RowView(pool);
  return Promise.all(rows.map((row) => prepare(view, row, { hosts, queues }, now)));
}

async function prepare(
  view: RowView,
  { deployment_id, hostname }: Unserved,
  { hosts, queues }: { readonly hosts: readonly IngressHost[]; readonly queues: NodeQueues },
  now: number,
): Promise<Prepared> {
  const [deployment, ready, routes] = await Promise.all([
    view.get('deployments', deployment_id),
    view.find(instancesOfDeployment, { deployment_id, statuses: ['ready'] }),
    view.find(routesOfHostname, { hostname }),
  ]);
  const instances = deployment && wantedInstances(deployment, ready);
  if (deployment === undefined || instances === undefined || !mayPublish(routes, now)) {
    return { deployment_id, hostname, isHostless: false };
  }
  const serving = routes.find(({ status }) => status === 'active')?.node_id;
  // The one that serves it is not left because it is behind: then the hostname waits.
  const able = hosts.filter(({ node_id }) => node_id === serving || queues.hasRoom(node_id));
  const host = chooseIngressHost(deployment, serving, able);
  if (host === undefined || !queues.take(host.node_id)) {
    return { deployment_id, hostname, isHostless: chooseIngressHost(deployment, serving, hosts) === undefined };
  }
  host.hostnames += 1;
  const { node_id } = host;
  const generation = (routes.at(-1)?.generation ?? 0) + 1;
  const instance_ids = instances.map(({ instance_id }) => instance_id);
  const make = () => {
    const job = publishIngressJob(randomUUID(), { deployment, hostname, generation, node_id, instances }, EPOCH);
    return { deployment_id, hostname, node_id, instance_ids, job };
  };
  return { deployment_id, hostname, isHostless: false, make };
}

/**
 * Routes that serve nobody any more, on hosts that are in service: replaced, or of a deployment that is being removed. One whose removal
 * failed is asked for again after a while.
 */
const LEAVING = `
  SELECT r.route_id, r.deployment_id, r.node_id
  FROM fleet.ingress_routes r
  JOIN fleet.deployments d USING (deployment_id)
  JOIN fleet.fleet_nodes n ON n.node_id = r.node_id
  LEFT JOIN fleet.jobs j ON j.job_id = r.job_id
  WHERE n.status IN ('active', 'unhealthy', 'draining')
    AND (r.status = 'draining' OR (d.status = 'removing' AND r.status IN ('active', 'publishing')))
    AND (r.status <> 'draining' OR j.job_id IS NULL OR j.status = 'completed'
         OR (j.status = 'failed' AND j.finished_at <= clock_timestamp() - interval '30 seconds'))
    AND r.route_id <> ALL($1::text[])
  ORDER BY r.published_at, r.route_id LIMIT $2`;

interface Leaving {
  readonly route_id: string;
  readonly deployment_id: string;
  readonly node_id: string;
}

/** Takes routes away from hosts that serve them for nobody, as far as their queues have room. */
export function removeRoutes(pool: pg.Pool, led: Led, page: number): Promise<PassReport> {
  return inPages<Leaving>(
    page,
    async (seen, limit) => {
      const values = [seen, limit];
      return (await pool.query<Leaving>({ name: 'leaving_routes', text: LEAVING, values })).rows;
    },
    ({ route_id }) => route_id,
    async (rows) => giveAll(led, removeRoute, await removals(pool, rows)),
  );
}

async function removals(pool: pg.Pool, rows: readonly Leaving[]) {
  const nodeIds = rows.map(({ node_id }) => node_id);
  const queues = await NodeQueues.read(pool, nodeIds);
  const view = new RowView(pool);
  const loaded = rows.map(({ route_id, deployment_id }) =>
    Promise.all([view.get('ingress_routes', route_id), view.get('deployments', deployment_id)]),
  );
  return (await Promise.all(loaded)).flatMap(([route, deployment]) => {
    if (route === undefined || deployment === undefined || !queues.take(route.node_id)) return [];
    const { route_id, hostname, generation, node_id } = route;
    const order = { deployment, hostname, generation, node_id, instances: [] };
    return [{ route_id, job: publishIngressJob(randomUUID(), order, EPOCH) }];
  });
}
