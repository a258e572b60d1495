import type { Losses } from '../../src/read/losses.ts';
import { isoTime, moment } from './format.ts';

/** Lines that say loudly what is not given up by itself; none where everything is. */
export function heldLines({ frozen_at, pools }: Losses): string[] {
  return [
    ...(frozen_at === null
      ? []
      : [`FROZEN since ${moment(frozen_at)}: no silent node is given up; \`fleet loss thaw\` ends that`]),
    ...pools.flatMap(({ pool, held_at, silent_node_ids }) =>
      held_at === null
        ? []
        : [
            `HELD since ${moment(held_at)}: ${silent_node_ids.length} nodes of pool ${pool} fell silent together and none is given up; ` +
              `\`fleet loss release ${pool}\` gives them up`,
          ],
    ),
  ];
}

/** The same for --json. */
export function lossesJson({ frozen_at, pools }: Losses) {
  return {
    frozen_at: isoTime(frozen_at),
    pools: pools.map(({ held_at, ...pool }) => ({ ...pool, held_at: isoTime(held_at) })),
  };
}
