import type { NodeState } from '../../src/domain/node/state.ts';
import type { ProvisionOutcome } from '../../src/provisioning/outcome.ts';
import type { ProvisionProgress } from '../../src/provisioning/ports.ts';
import type { NextStep } from '../../src/provisioning/provision.ts';

/** One line of progress, with the events that were appended. */
export function progressLine({ message, events }: ProvisionProgress): string {
  const appended = events.map(({ type, position }) => `${type} at ${position}`).join(', ');
  return appended === '' ? message : `${message} (${appended})`;
}

/** Where a run has brought its node. */
export function provisionedLine({ name, nodeId, state }: Extract<ProvisionOutcome, { ok: true }>): string {
  return `${name} (${nodeId}) ${state === 'enrolled' ? 'has enrolled' : `is ${state.replaceAll('_', ' ')}`}`;
}

/** What --dry-run says of a node that is there already. */
export function nextStepLine({ name, server_id, provision_state }: NodeState, step: NextStep, retry: boolean): string {
  const where = `${name} is ${provision_state.replaceAll('_', ' ')}`;
  switch (step) {
    case 'done':
      return `${where}: there is nothing to do`;
    case 'failed':
      if (!retry) return `${where}: only --retry goes on`;
      return `${where}: ${server_id === null ? 'it' : `server ${server_id} would be deleted, and it`} would begin again`;
    case 'ensure_server':
      return `${where}: its server would be looked for, and created if there is none`;
    case 'await_server':
      return `${where}: server ${server_id} would be waited for`;
    case 'record_capacity':
      return `${where}: its capacity would be recorded`;
    case 'await_enrollment':
      return `${where}: its agent would be waited for`;
  }
}
