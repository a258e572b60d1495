import type { HetznerApi } from './api.ts';
import { hasCode } from './errors.ts';
import { accepted, type HetznerResult, refused } from './refusal.ts';
import type { Server } from './resources.ts';
import { awaitActions, describeAction, pollUntil, type Waiting } from './waiting.ts';

/**
 * Waits until the server runs. One that is off (its start failed, or a create was cut short) is powered on, once. Refuses
 * `server_start_failed`, `server_vanished`, `server_being_deleted` and `server_not_running_in_time`, each naming the server.
 */
export async function awaitRunning(
  api: HetznerApi,
  { id, name }: { id: number; name: string },
  waiting: Waiting,
): Promise<HetznerResult<Server>> {
  const named = `server ${name} (${id})`;
  let last = 'unknown';
  let poweredOn = false;
  const outcome = await pollUntil<HetznerResult<Server>>(async () => {
    const server = await api.getServer(id);
    if (server === undefined) return refused('server_vanished', `${named} does not exist any more`);
    last = server.status;
    if (last === 'running') return accepted(server);
    if (last === 'deleting') return refused('server_being_deleted', `${named} is being deleted`);
    if (last !== 'off' || poweredOn) return undefined;
    const power = await powerOn(api, id, named, waiting);
    poweredOn = power === 'on';
    return power === 'on' || power === 'busy' ? undefined : power;
  }, waiting);
  return (
    outcome ??
    refused(
      'server_not_running_in_time',
      `${named} is ${last}, not running, after ${waiting.timeoutMs / 1000} s; use --resume`,
    )
  );
}

/** `busy`: another action holds the server, such as the very start that is awaited. */
async function powerOn(
  api: HetznerApi,
  id: number,
  named: string,
  waiting: Waiting,
): Promise<'on' | 'busy' | HetznerResult<never>> {
  try {
    const outcome = await awaitActions(api, [await api.powerOnServer(id)], waiting);
    if (outcome.state !== 'failed') return 'on';
    return refused('server_start_failed', `${named} does not start: ${describeAction(outcome.action)}`);
  } catch (error) {
    if (hasCode(error, 'locked', 'conflict')) return 'busy';
    throw error;
  }
}
