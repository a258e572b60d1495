import type { Purpose } from '../domain/job/purpose.ts';
import type { JobState } from '../domain/job/state.ts';
import {
  databaseByJob,
  deploymentByBuildJob,
  instanceByJob,
  readyInSlot,
  routeByJob,
  routesOfHostname,
} from '../transactor/finders.ts';
import type { Rows } from '../transactor/row-view.ts';

/** What a job is for: see {@link Purpose}. Of kinds that are for nothing else than themselves nothing is read: they are the many. */
export async function loadPurpose(rows: Rows, job: JobState | undefined): Promise<Purpose> {
  if (job === undefined) return {};
  const { job_id } = job;
  switch (job.kind) {
    case 'ensure_application':
    case 'teardown_application':
      return forInstance(rows, job_id);
    case 'publish_ingress':
      return forRoute(rows, job_id);
    case 'ensure_database':
      return { database: (await rows.find(databaseByJob, { job_id }))[0] };
    case 'build':
      return { deployment: (await rows.find(deploymentByBuildJob, { job_id }))[0] };
    // Kinds are open: jobs of an older or newer program's may be in the log.
    default:
      return {};
  }
}

async function forInstance(rows: Rows, job_id: string): Promise<Purpose> {
  const [instance] = await rows.find(instanceByJob, { job_id });
  if (instance === undefined) return {};
  // Not always the one before it: that may have been lost on its way, and then an earlier one serves still.
  const { deployment_id, role, slot } = instance;
  const [serving] = await rows.find(readyInSlot, { deployment_id, role, slot });
  return { instance, superseded: serving?.instance_id === instance.instance_id ? undefined : serving };
}

async function forRoute(rows: Rows, job_id: string): Promise<Purpose> {
  const [route] = await rows.find(routeByJob, { job_id });
  const generations = route === undefined ? [] : await rows.find(routesOfHostname, { hostname: route.hostname });
  return { route, activeRoute: generations.find(({ status }) => status === 'active') };
}
