import { describe, expect, test } from 'vitest';
import type { ProcessExit } from '../../src/up/log-file.ts';
import { Watch } from '../../src/up/watch.ts';
import { waitFor } from '../support/wait-for.ts';

const KILLED: ProcessExit = { code: null, signal: 'SIGKILL', lastLogLines: ['its last word'] };

function watching(restartAfterMs?: number) {
  const told: string[] = [];
  return { told, watch: new Watch({ onTrouble: (line) => told.push(line), restartAfterMs }) };
}

function end(restart: () => Promise<unknown>) {
  return { name: 'gateway', logFile: '/logs/gateway.log', exit: KILLED, restart };
}

describe('a part of the fleet dies', () => {
  test('nobody starts it again: told in one line with its log, and the fleet is broken for that reason', () => {
    const { told, watch } = watching();
    watch.ended(end(() => Promise.reject(new Error('not asked for'))));
    const line = 'gateway died: signal SIGKILL; its last word; its log is /logs/gateway.log';
    expect(told).toEqual([line]);
    expect(watch.broken.reason).toEqual(new Error(line));
  });

  test('restarts wished for: told, started again after that time, not broken', async () => {
    const { told, watch } = watching(30);
    const diedAt = performance.now();
    let restartedAt = 0;
    watch.ended(
      end(async () => {
        restartedAt = performance.now();
      }),
    );
    await waitFor(() => told.includes('gateway runs again'), { what: 'it runs again' });
    expect(told[0]).toMatch(/its log is \/logs\/gateway\.log; it is started again in 0\.03 s$/);
    expect(restartedAt - diedAt).toBeGreaterThanOrEqual(28);
    expect(watch.broken.aborted).toBe(false);
  });

  test('a restart fails: told, and tried again until it runs', async () => {
    const { told, watch } = watching(1);
    let attempts = 0;
    watch.ended(
      end(async () => {
        attempts += 1;
        if (attempts === 1) throw new Error('the port is in use');
      }),
    );
    await waitFor(() => told.length === 3, { what: 'it runs again' });
    expect(told.slice(1)).toEqual([
      'gateway cannot be started again yet: the port is in use; its log is /logs/gateway.log',
      'gateway runs again',
    ]);
    expect(watch.broken.aborted).toBe(false);
  });

  test('closed before the restart is due: it never comes, and later ends are nobody’s business', async () => {
    const { told, watch } = watching(3_600_000);
    let restarts = 0;
    const counted = end(async () => {
      restarts += 1;
    });
    watch.ended(counted);
    await watch.close();
    watch.ended(counted);
    expect([restarts, told.length, watch.broken.aborted]).toEqual([0, 1, false]);
  });
});
