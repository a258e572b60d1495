import { join } from 'node:path';
import type { RunningFleet } from '../../src/up/fleet.ts';
import type { UpReport } from '../../src/up/report.ts';
import { pairLines } from '../output/table.ts';

/** What a fleet that has just become ready says: where everything is, and what to do with it. */
export function readyLines(
  { urls, paths }: Pick<RunningFleet, 'urls' | 'paths'>,
  stateDir: string,
  { nodes_enrolled, jobs_completed, seconds }: UpReport,
  cwd = process.cwd(),
): string[] {
  const choice = stateDir === join(cwd, '.pushleft') ? '' : ` --state-dir ${stateDir}`;
  const command = (text: string) => `npx pushleft-controller ${text}${choice}`;
  return [
    '',
    `ready after ${seconds} s: ${nodes_enrolled} nodes enrolled, ${jobs_completed} jobs completed`,
    '',
    ...pairLines([
      ['  agents talk to', urls['gateway'] ?? ''],
      ['  and enrol at', urls['enroll'] ?? ''],
      ['  health, metrics', `${urls['admin'] ?? ''}/healthz, /status, /metrics`],
      ['  Hetzner API', `${urls['hetzner'] ?? ''} (a stub)`],
      ['  state', stateDir],
      ['  logs', paths['logs'] ?? ''],
      ['  machines', paths['machines'] ?? ''],
    ]),
    '',
    'Try in another terminal:',
    `  ${command('fleet list')}`,
    `  ${command('fleet show app-fsn1-1')}`,
    `  ${command('fleet events --follow')}`,
    `  ${command('job queue diagnose_host --node app-fsn1-1 --wait')}`,
    '',
  ];
}
