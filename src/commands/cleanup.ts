import { type ConfirmCleanup, confirmCleanup } from '../domain/node/confirm-cleanup.ts';
import type { CommandDefinition } from '../transactor/command.ts';
import { loadAgent } from './agent.ts';

/** See {@link confirmCleanup}. */
export const confirmCleanupCommand: CommandDefinition<ConfirmCleanup, Parameters<typeof confirmCleanup>[1]> = {
  name: 'confirm_cleanup',
  async load(rows, { instance_ids, ...agent }) {
    const [identity, instances] = await Promise.all([
      loadAgent(rows, agent),
      Promise.all([...new Set(instance_ids)].map((id) => rows.get('application_instances', id))),
    ]);
    return { ...identity, instances };
  },
  decide: confirmCleanup,
};
