import type pg from 'pg';
import { MOST_OPEN_JOBS } from '../../domain/node/limits.ts';

const OPEN = `
  SELECT node_id, count(*)::integer AS open FROM fleet.jobs
  WHERE node_id = ANY($1::text[]) AND status IN ('queued', 'leased') GROUP BY node_id`;

/** How many jobs wait for some nodes or are done there, counted on as a step asks for more. */
export class NodeQueues {
  readonly #open: Map<string, number>;

  private constructor(open: Map<string, number>) {
    this.#open = open;
  }

  /** Reads the queues of these nodes. */
  static async read(pool: pg.Pool, nodeIds: readonly string[]): Promise<NodeQueues> {
    const { rows } = await pool.query<{ node_id: string; open: number }>({
      name: 'node_queues',
      text: OPEN,
      values: [[...new Set(nodeIds)]],
    });
    return new NodeQueues(new Map(rows.map(({ node_id, open }) => [node_id, open])));
  }

  /** Whether a node may have one more job. */
  hasRoom(nodeId: string): boolean {
    return (this.#open.get(nodeId) ?? 0) < MOST_OPEN_JOBS;
  }

  /** Counts one more job for a node; false where it has as many as it may have: it is asked by a later pass, when it has done some. */
  take(nodeId: string): boolean {
    if (!this.hasRoom(nodeId)) return false;
    this.#open.set(nodeId, (this.#open.get(nodeId) ?? 0) + 1);
    return true;
  }
}
