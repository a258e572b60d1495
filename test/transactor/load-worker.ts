import { requestNodeCommand } from '../../src/commands/node.ts';
import { execute, nodeRequest, testTransactor } from '../support/fleet.ts';

/**
 * A process of its own that requests nodes as fast as it can, sixteen at a time, until it is killed. Each line on stdout is a position
 * that was acknowledged. Environment: DATABASE_URL.
 */
const transactor = testTransactor(process.env['DATABASE_URL'] ?? '', { maxBatch: 8, patienceMs: 60_000 });

async function go(): Promise<never> {
  for (;;) {
    const outcome = await execute(transactor, requestNodeCommand, nodeRequest());
    if (!outcome.ok) throw new Error(`refused: ${outcome.refusal.code}`);
    process.stdout.write(`${outcome.events.map((event) => event.position).join('\n')}\n`);
  }
}

await Promise.all(Array.from({ length: 16 }, go));
