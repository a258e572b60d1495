import type pg from 'pg';
import type { Logger } from 'pino';
import { WHOLE_FLEET } from '../domain/pool/state.ts';

/** Where nodes are not given up by themselves: part of the scheduler's beacon. */
export interface HeldLosses {
  readonly frozen: boolean;
  readonly held_pools: readonly string[];
}

/** Looks at what is held, and says loudly when that changes: somebody has to find out why so many fell silent. */
export class LossWatch {
  readonly #log: Pick<Logger, 'error' | 'info'>;
  #told = '';

  constructor(log: Pick<Logger, 'error' | 'info'>) {
    this.#log = log;
  }

  /** What is held now. */
  async look(pool: pg.Pool): Promise<HeldLosses> {
    const { rows } = await pool.query<{ scope: string }>({
      name: 'held_losses',
      text: 'SELECT scope FROM fleet.node_loss_holds WHERE held_at IS NOT NULL ORDER BY scope',
    });
    const scopes = rows.map(({ scope }) => scope);
    const held: HeldLosses = {
      frozen: scopes.includes(WHOLE_FLEET),
      held_pools: scopes.filter((scope) => scope !== WHOLE_FLEET),
    };
    this.#tell(held);
    return held;
  }

  #tell(held: HeldLosses): void {
    const text = JSON.stringify(held);
    if (text === this.#told) return;
    if (held.frozen || held.held_pools.length > 0) {
      this.#log.error(held, 'silent nodes are not given up: see `pushleft-controller fleet loss status`');
    } else if (this.#told !== '') this.#log.info('silent nodes are given up again');
    this.#told = text;
  }
}
