import type { Hook } from '@oclif/core';
import { EXIT } from '../exit-code.ts';

/** Says in one line that there is no such command, and which one may have been meant. Exit 2. */
const commandNotFound: Hook.CommandNotFound = async function notFound({ id, config }) {
  const typed = id.replaceAll(':', ' ');
  const [nearest] = config.commandIDs
    .map((known) => ({ name: known.replaceAll(':', ' '), distance: distance(known, id) }))
    .filter((candidate) => candidate.distance <= 3)
    .sort((a, b) => a.distance - b.distance);
  const hint = nearest === undefined ? `see \`${config.bin} help\`` : `did you mean \`${config.bin} ${nearest.name}\`?`;
  process.stderr.write(`${config.bin}: no command is called ${typed.replaceAll(/\p{Cc}/gu, '?')}\n  ${hint}\n`);
  this.exit(EXIT.usage);
};

export default commandNotFound;

/** Levenshtein's distance: how many letters have to be changed, added or removed. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (const [i, a] of from.split('').entries()) {
    const next = [i + 1];
    for (const [j, b] of to.split('').entries()) {
      next.push(Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, (row[j] ?? 0) + (a === b ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
