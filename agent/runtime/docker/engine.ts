import { Client } from 'undici';
import * as v from 'valibot';

/** The engine answers everything but a stop or a pull at once. */
const ANSWER_TIMEOUT_MS = 30_000;
/** A list of a few thousand containers; what is longer is not from an engine. */
const RESPONSE_MAX_BYTES = 16 * 1024 ** 2;
/** The API that this is written for: that of Docker 20.10. Newer engines that have left it behind (29 begins at 1.44) are asked in their oldest. */
const API_VERSION = '1.41';

const Version = v.pipe(v.string(), v.regex(/^\d{1,3}\.\d{1,3}$/));
const Versions = v.object({ ApiVersion: Version, MinAPIVersion: v.optional(Version) });
const Problem = v.object({ message: v.string() });

/** One call. `path` is what follows the version, with its query; `timeoutMs` is for the whole of it. */
export interface EngineCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: object;
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
}

/** What the engine answered: its JSON, or for a stream of JSON lines the last of them. */
export interface EngineAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** Docker's Engine API over its unix socket. Throws when the engine is away, does not answer in time, or the signal is aborted. */
export class DockerEngine {
  readonly #socketPath: string;
  #prefix: Promise<string> | undefined;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** One call and its whole answer, whatever its status. */
  async call(call: EngineCall): Promise<EngineAnswer> {
    // Asked for again when it could not be told: the engine may come back as another.
    this.#prefix ??= this.#negotiate();
    const prefix = await this.#prefix.catch((error: unknown) => {
      this.#prefix = undefined;
      throw error;
    });
    return this.#exchange(call, `${prefix}${call.path}`);
  }

  async #negotiate(): Promise<string> {
    const call = { method: 'GET', path: '/version', signal: new AbortController().signal } as const;
    const { body } = await this.#exchange(call, call.path);
    const versions = v.safeParse(Versions, body);
    if (!versions.success) throw new Error(`what answers on ${this.#socketPath} is no Docker engine`);
    const { ApiVersion: newest, MinAPIVersion: oldest = API_VERSION } = versions.output;
    if (isOlder(newest, API_VERSION)) throw new Error(`the Docker engine knows API ${newest}, not ${API_VERSION}`);
    return `/v${isOlder(API_VERSION, oldest) ? oldest : API_VERSION}`;
  }

  async #exchange(call: EngineCall, path: string): Promise<EngineAnswer> {
    const { method, body, timeoutMs = ANSWER_TIMEOUT_MS, signal } = call;
    // Idle connections would outlive their use, and an engine that was started anew.
    const client = new Client('http://docker', {
      socketPath: this.#socketPath,
      maxResponseSize: RESPONSE_MAX_BYTES,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
    try {
      const answer = await client.request({
        method,
        path,
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
        ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      });
      return { status: answer.statusCode, body: lastJson(await answer.body.text()) };
    } catch (error) {
      signal.throwIfAborted();
      throw new Error(`the Docker engine on ${this.#socketPath} did not answer ${method} ${call.path}`, {
        cause: error,
      });
    } finally {
      await client.destroy();
    }
  }
}

/** What the engine says of a refusal, in one line. */
export function messageOf({ status, body }: EngineAnswer): string {
  const parsed = v.safeParse(Problem, body);
  return parsed.success ? parsed.output.message.slice(0, 512) : `HTTP ${status}`;
}

/** The answer of a call whose every other status is a fault. */
export function expectStatus(answer: EngineAnswer, what: string, ...expected: readonly number[]): EngineAnswer {
  if (!expected.includes(answer.status)) throw new Error(`the Docker engine did not ${what}: ${messageOf(answer)}`);
  return answer;
}

function isOlder(version: string, than: string): boolean {
  return version.localeCompare(than, 'en', { numeric: true }) < 0;
}

function lastJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A stream of progress: one object a line.
  }
  try {
    return JSON.parse(text.trimEnd().split('\n').at(-1) ?? '');
  } catch {
    return undefined;
  }
}
