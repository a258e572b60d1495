import type pg from 'pg';
import type { NodeState } from '../domain/node/state.ts';
import { reading } from './database.ts';
import type { Tick } from './loader.ts';
import { SharedRead } from './shared-read.ts';

/** What a lease request asks for. */
export interface WorkQuestion {
  readonly node: NodeState;
  readonly kinds: readonly string[];
  readonly requestId: string;
}

/** `offered`: a command may find a job. `quiet`: nothing waits for the node, and it holds nothing. */
interface WorkAnswer {
  readonly offered: boolean;
  readonly quiet: boolean;
}

/** Nodes that were found without work, and at which positions. */
interface Quiet {
  readonly authorises: number;
  readonly offersWork: number;
  readonly kinds: readonly string[];
}

const MOST_QUIET = 50_000;

const QUESTION = `
  SELECT q.waits OR q.again AS offered, NOT (q.waits OR q.holds) AS quiet
  FROM (
    SELECT asked.ord,
           EXISTS (SELECT 1 FROM fleet.jobs j
                   WHERE j.status = 'queued' AND j.node_id = asked.node_id AND j.kind = ANY(asked.kinds::text[]))
           OR EXISTS (SELECT 1 FROM fleet.jobs j
                      WHERE j.status = 'queued' AND j.pool = asked.pool AND j.kind = ANY(asked.kinds::text[])) AS waits,
           EXISTS (SELECT 1 FROM fleet.jobs j WHERE j.status = 'leased' AND j.leased_to = asked.node_id) AS holds,
           EXISTS (SELECT 1 FROM fleet.jobs j
                   WHERE j.lease_request_id = asked.request_id AND j.status = 'leased' AND j.leased_to = asked.node_id) AS again
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS asked(node_id, pool, kinds, request_id, ord)
  ) AS q ORDER BY q.ord`;

/**
 * Says whether a lease request is worth a command: a job waits for the node, or the request itself was granted one before and its
 * answer was lost. A node that was found to have neither work nor a lease stays without until an event offers work or changes the node,
 * so its next requests cost nothing. An answer is only a hint, and may be wrong by a moment: the command decides.
 */
export class WorkFinder {
  readonly #quiet = new Map<string, Quiet>();
  readonly #questions: SharedRead<WorkQuestion, WorkAnswer>;

  constructor(pool: pg.Pool) {
    this.#questions = new SharedRead(async (asked) => {
      const values = [
        asked.map(({ node }) => node.node_id),
        asked.map(({ node }) => (node.schedulable ? node.pool : null)),
        asked.map(({ kinds }) => `{${kinds.join(',')}}`), // names of kinds are plain words (KindName)
        asked.map(({ requestId }) => requestId),
      ];
      return (await reading(() => pool.query<WorkAnswer>({ name: 'gateway_work', text: QUESTION, values }))).rows;
    });
  }

  /** `tick` must be one that began after the request came. Costs nothing while the node is known to be without work. */
  async offered(question: WorkQuestion, tick: Tick): Promise<boolean> {
    if (this.isQuiet(question, tick)) return false;
    const { offered, quiet } = await this.#questions.ask(question);
    // Read after the tick, so what it says holds from the tick's positions on: it can only be newer, never older.
    if (quiet) this.#keep(question.node.node_id, { ...positions(tick), kinds: question.kinds });
    else this.#quiet.delete(question.node.node_id);
    return offered;
  }

  /** Whether the node is known to have neither work nor a lease at this tick, without asking anyone. */
  isQuiet({ node, kinds }: WorkQuestion, tick: Tick): boolean {
    const known = this.#quiet.get(node.node_id);
    return (
      known !== undefined &&
      known.offersWork === tick.offersWork &&
      known.authorises === tick.authorises &&
      sameWords(known.kinds, kinds)
    );
  }

  #keep(nodeId: string, quiet: Quiet): void {
    this.#quiet.delete(nodeId);
    this.#quiet.set(nodeId, quiet);
    if (this.#quiet.size <= MOST_QUIET) return;
    const [oldest] = this.#quiet.keys();
    if (oldest !== undefined) this.#quiet.delete(oldest);
  }
}

function positions({ authorises, offersWork }: Tick) {
  return { authorises, offersWork };
}

function sameWords(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((word, i) => word === b[i]);
}
