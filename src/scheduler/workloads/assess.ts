import type pg from 'pg';
import { assessDeploymentCommand } from '../../commands/deployment.ts';
import { underTerm } from '../../commands/term.ts';
import type { AssessDeployment } from '../../domain/deployment/assess.ts';
import { giveAll, type Led, type PassReport } from '../pass.ts';
import { inPages } from './pages.ts';

const assessDeployment = underTerm(assessDeploymentCommand);

/** Deployments that are on their way somewhere, and live ones that lack something which is not on its way. */
const UNSETTLED = `
  SELECT d.deployment_id FROM fleet.deployments d
  WHERE (d.status IN ('deploying', 'degraded', 'removing')
     OR (d.status = 'live' AND (
       d.deployment_id = ANY($1::text[])
       OR EXISTS (SELECT 1 FROM fleet.application_instances i WHERE i.deployment_id = d.deployment_id AND i.status = 'error')
       OR EXISTS (SELECT 1 FROM fleet.ingress_routes r
                  WHERE r.deployment_id = d.deployment_id AND r.status = 'failed' AND r.relocation AND r.failures > 0))))
    AND d.deployment_id <> ALL($2::text[])
  ORDER BY d.created_at, d.deployment_id LIMIT $3`;

/** Says where deployments are, after all else was done for them; `unplaceable` are those that this pass found no place for, and why. */
export function assessDeployments(
  pool: pg.Pool,
  led: Led,
  unplaceable: ReadonlyMap<string, NonNullable<AssessDeployment['unplaceable']>>,
  page: number,
): Promise<PassReport> {
  return inPages<{ deployment_id: string }>(
    page,
    async (seen, limit) => {
      const values = [[...unplaceable.keys()], seen, limit];
      return (await pool.query<{ deployment_id: string }>({ name: 'unsettled_deployments', text: UNSETTLED, values }))
        .rows;
    },
    ({ deployment_id }) => deployment_id,
    (rows) => {
      const commands = rows.map(({ deployment_id }) => ({
        deployment_id,
        unplaceable: unplaceable.get(deployment_id) ?? null,
      }));
      return giveAll(led, assessDeployment, commands);
    },
  );
}
