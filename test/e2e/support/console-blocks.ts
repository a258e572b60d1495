import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../../..');
const OPERATOR = '$ npx pushleft-controller ';
const AGENT = /^([a-z0-9-]+)# pushleft-agent (.*)$/;

/** A command that a page tells its reader to run, and on which node's host; on the gateways' own where none is named. */
export interface DocumentedCommand {
  readonly line: string;
  readonly node: string | undefined;
  readonly args: readonly string[];
}

/** The commands of a page's `console` blocks, in their order. Other lines of such blocks are output. */
export function commandsOf(page: string): DocumentedCommand[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const blocks = [...text.matchAll(/^ *```console\n(.*?)^ *```/gms)].map((match) => match[1] ?? '');
  return blocks
    .flatMap((block) => block.split('\n'))
    .flatMap((indented) => {
      const line = indented.trim();
      if (line.startsWith(OPERATOR)) {
        return [{ line, node: undefined, args: line.slice(OPERATOR.length).split(' ') }];
      }
      const [, node, rest] = AGENT.exec(line) ?? [];
      return rest === undefined ? [] : [{ line, node, args: rest.split(' ') }];
    });
}
