import { basename } from 'node:path';
import type { NodeState } from '../../src/domain/node/state.ts';
import { HOST_PATHS } from '../../src/hetzner/cloud-init/host-paths.ts';
import { moment } from './format.ts';
import { type Done, outcomeLine } from './outcome.ts';

/** What was done for a node, and how its file gets to the host. The secret is in the file alone. */
export function reenrolledLines(
  { name, status, public_ipv4 }: Pick<NodeState, 'name' | 'status' | 'public_ipv4'>,
  file: string,
  expiresAt: number,
  done: Done,
): string[] {
  const may = outcomeLine(done, `${name} may enrol anew until ${moment(expiresAt)}`, `${name} may enrol anew already`);
  const lost = status === 'lost' ? ['  it stays lost: it can only fetch the list of what to clean up'] : [];
  if (done.dryRun) return [may, ...lost, `  its file would be ${file}`];
  const host = `root@${public_ipv4 ?? name}`;
  const there = shellWord(basename(file));
  return [
    may,
    ...lost,
    `  scp -p ${shellWord(file)} ${host}:`,
    `  ssh ${host} pushleft-agent enroll --environment-file ${HOST_PATHS.environment} --bundle ${there}`,
  ];
}

/** Said once below the nodes. */
export const HOW_TO_CARRY =
  'Each file (mode 0600) holds a secret that works once, for one node. Carry it over SSH and remove it here; on the host --bundle removes it.';

function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) && !text.startsWith('-') ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
