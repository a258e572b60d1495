import * as v from 'valibot';
import { LogHead, RequestId } from '../src/protocol/identifiers.ts';
import { replaceFile, type StateFs } from './state-fs.ts';

const NAME = 'lease-memory.json';

const Remembered = v.strictObject({ log_head: v.optional(LogHead), unanswered_request_id: v.optional(RequestId) });

/**
 * What outlives the process between two leases, in `<state>/lease-memory.json`:
 * the log head that the gateway last told this agent to keep (DESIGN §5, restores), and the id of a lease request that was
 * cut short by a stop, so that a job granted in that very moment comes back at the next start instead of timing out.
 */
export class LeaseMemory {
  readonly #fs: StateFs;
  readonly #stateDir: string;
  #remembered: v.InferOutput<typeof Remembered>;

  private constructor(fs: StateFs, stateDir: string, remembered: v.InferOutput<typeof Remembered>) {
    this.#fs = fs;
    this.#stateDir = stateDir;
    this.#remembered = remembered;
  }

  /** Reads what there is. A file that cannot be understood counts as none: losing it costs one early warning. */
  static async open(fs: StateFs, stateDir: string): Promise<LeaseMemory> {
    const parsed = v.safeParse(Remembered, parseJson(await fs.readText(`${stateDir}/${NAME}`)));
    return new LeaseMemory(fs, stateDir, parsed.success ? parsed.output : {});
  }

  /** Sent with each lease. */
  get logHead(): string | undefined {
    return this.#remembered.log_head;
  }

  /** Keeps a head for ever, which is on disk when this returns. The gateway says which of two is the higher one. */
  async keepLogHead(logHead: string): Promise<void> {
    if (logHead === this.#remembered.log_head) return;
    await this.#replace({ ...this.#remembered, log_head: logHead });
  }

  /** The request that the last process left unanswered, once. */
  async takeUnanswered(): Promise<string | undefined> {
    const { unanswered_request_id: requestId, ...rest } = this.#remembered;
    if (requestId !== undefined) await this.#replace(rest);
    return requestId;
  }

  /** Leaves a request for the next process. */
  async keepUnanswered(requestId: string): Promise<void> {
    await this.#replace({ ...this.#remembered, unanswered_request_id: requestId });
  }

  async #replace(remembered: v.InferOutput<typeof Remembered>): Promise<void> {
    await replaceFile(this.#fs, this.#stateDir, NAME, `${JSON.stringify(remembered)}\n`);
    this.#remembered = remembered;
  }
}

function parseJson(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
