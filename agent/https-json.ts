import { createHash, type Hash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { SecureContextOptions } from 'node:tls';
import { Client, Pool } from 'undici';
import * as v from 'valibot';
import { ErrorBody, type GatewayErrorCode } from '../src/protocol/errors.ts';
import { describeError } from './log.ts';
import type { Time } from './time.ts';

/** A connection that is not up after this is given up. */
const CONNECT_TIMEOUT_MS = 5_000;
/** An answer that has not begun this long after it was due is given up. */
const ANSWER_TIMEOUT_MS = 5_000;
/** Idle connections are kept a little longer than a lease is polled, so that a quiet agent does not handshake again. */
const KEEP_ALIVE_MS = 60_000;
/** No answer is longer; a stranger's endless body ends here. */
const RESPONSE_MAX_BYTES = 256 * 1024;

/** Trust and, for mTLS, the own identity. */
export type TlsMaterial = Pick<SecureContextOptions, 'ca' | 'cert' | 'key'>;

/** When an answer was asked for, by the own monotonic clock, and what the server's clock said in it. */
export interface AnswerTime {
  readonly sentAtMs: number;
  /** Date header, whole seconds; null when there is none. */
  readonly serverTimeMs: number | null;
}

/** An answer other than 2xx. `code` is null when the body is not an error of ours (a proxy's page, say). */
interface Refusal {
  readonly status: number;
  readonly code: GatewayErrorCode | null;
  readonly message: string;
  readonly retryAfterMs: number | null;
  /** The parsed body, for answers that say more than `error` and `message`. */
  readonly body: unknown;
}

/** What came of one exchange. A transport fault or an answer that cannot be understood is `unreachable`. */
export type Answer<T> =
  | { readonly kind: 'ok'; readonly body: T; readonly time: AnswerTime }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly time: AnswerTime }
  | { readonly kind: 'unreachable'; readonly reason: string }
  | { readonly kind: 'aborted' };

/** One exchange. `expect` is the schema of a 200's body. */
export interface Exchange<T> {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
  readonly expect: v.GenericSchema<unknown, T>;
  readonly signal?: AbortSignal | undefined;
  /** How much longer than usual the answer may take, because the server was asked to wait. */
  readonly waitMs?: number;
}

/** A file to be had. What is longer than `maxBytes` is given up. */
export interface Download {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Where it is written (0600); nothing may be there. */
  readonly file: string;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** What was written. */
export interface Downloaded {
  readonly bytes: number;
  readonly sha256: string;
}

/** JSON over TLS 1.3 with one server; connections are kept alive and replaced after a fault. */
export class HttpsJson {
  readonly #origin: URL;
  readonly #tls: TlsMaterial;
  readonly #time: Time;
  #pool: Pool;

  constructor(origin: URL, tls: TlsMaterial, time: Time) {
    this.#origin = origin;
    this.#tls = tls;
    this.#time = time;
    this.#pool = this.#connect();
  }

  /** Never throws for what the network or the server does. */
  async exchange<T>(exchange: Exchange<T>): Promise<Answer<T>> {
    const pool = this.#pool;
    try {
      return await this.#ask(pool, exchange);
    } catch (error) {
      if (exchange.signal?.aborted === true) return { kind: 'aborted' };
      this.#replace(pool);
      return { kind: 'unreachable', reason: describeFault(error) };
    }
  }

  /** Writes a 200's body to a file, over a connection of its own. What was written of one that came to nothing is left. */
  async download({ path, headers, file, maxBytes, signal }: Download): Promise<Answer<Downloaded>> {
    const client = new Client(this.#origin, { ...this.#options(), maxResponseSize: maxBytes });
    const sentAtMs = this.#time.nowMs();
    try {
      const response = await client.request({ method: 'GET', path, headers, signal });
      const time = { sentAtMs, serverTimeMs: dateHeaderMs(response.headers['date']) };
      if (response.statusCode !== 200) {
        const retryAfterMs = retryAfterHeaderMs(response.headers['retry-after']);
        const body = parseJson(await response.body.text());
        return { kind: 'refused', refusal: readRefusal(response.statusCode, body, retryAfterMs), time };
      }
      const digest = createHash('sha256');
      const output = createWriteStream(file, { flags: 'wx', mode: 0o600 });
      await pipeline(response.body, tapInto(digest), output);
      return { kind: 'ok', body: { bytes: output.bytesWritten, sha256: digest.digest('hex') }, time };
    } catch (error) {
      if (signal.aborted) return { kind: 'aborted' };
      return { kind: 'unreachable', reason: describeFault(error) };
    } finally {
      await client.destroy();
    }
  }

  /** Ends every connection at once. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  async #ask<T>(pool: Pool, { method, path, body, expect, signal, waitMs = 0 }: Exchange<T>): Promise<Answer<T>> {
    const sentAtMs = this.#time.nowMs();
    const response = await pool.request({
      method,
      path,
      headersTimeout: waitMs + ANSWER_TIMEOUT_MS,
      bodyTimeout: ANSWER_TIMEOUT_MS,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    const text = await response.body.text();
    const time = { sentAtMs, serverTimeMs: dateHeaderMs(response.headers['date']) };
    const parsed = parseJson(text);
    if (response.statusCode !== 200) {
      const retryAfterMs = retryAfterHeaderMs(response.headers['retry-after']);
      return { kind: 'refused', refusal: readRefusal(response.statusCode, parsed, retryAfterMs), time };
    }
    const accepted = v.safeParse(expect, parsed);
    if (accepted.success) return { kind: 'ok', body: accepted.output, time };
    return { kind: 'unreachable', reason: `${path} answered 200 with something else than the protocol says` };
  }

  /** Connections that share a fault's cause (a moved address, a half-dead path) are not worth keeping. */
  #replace(broken: Pool): void {
    if (this.#pool !== broken) return;
    this.#pool = this.#connect();
    // Requests still under way on the old one, a heartbeat for example, may yet be answered.
    broken.close().catch(() => undefined);
  }

  #connect(): Pool {
    return new Pool(this.#origin, { ...this.#options(), connections: 4, maxResponseSize: RESPONSE_MAX_BYTES });
  }

  #options() {
    return {
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: ANSWER_TIMEOUT_MS,
      bodyTimeout: ANSWER_TIMEOUT_MS,
      connect: { ...this.#tls, minVersion: 'TLSv1.3', timeout: CONNECT_TIMEOUT_MS, maxCachedSessions: 0 },
    } as const;
  }
}

/** Digests what goes by. */
function tapInto(digest: Hash) {
  return async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      digest.update(chunk);
      yield chunk;
    }
  };
}

/** OpenSSL's verdicts that are as likely the host's clock as the certificate: the clock is named, because nobody looks there. */
const CLOCK_FAULTS: Readonly<Record<string, string>> = {
  CERT_NOT_YET_VALID: "the gateway's certificate is not valid yet by this host's clock: is it behind?",
  CERT_HAS_EXPIRED: "the gateway's certificate has expired by this host's clock: is it ahead?",
};

function describeFault(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const clockFault = CLOCK_FAULTS[code];
  return clockFault === undefined ? describeError(error) : `${code}: ${clockFault}`;
}

function readRefusal(status: number, body: unknown, retryAfterMs: number | null): Refusal {
  const parsed = v.safeParse(ErrorBody, body);
  return parsed.success
    ? { status, code: parsed.output.error, message: parsed.output.message, retryAfterMs, body }
    : { status, code: null, message: `HTTP ${status}`, retryAfterMs, body };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type HeaderValue = string | string[] | undefined;

function dateHeaderMs(value: HeaderValue): number | null {
  const parsed = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(parsed) ? null : parsed;
}

/** Only the form in seconds, which is what our gateway sends; bounded, since a stranger may have set it. */
function retryAfterHeaderMs(value: HeaderValue): number | null {
  return typeof value === 'string' && /^\d{1,4}$/.test(value) ? Math.min(Number(value), 300) * 1_000 : null;
}
