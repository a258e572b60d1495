import ky from 'ky';
import * as v from 'valibot';
import type { HetznerClock } from './api.ts';
import { AmbiguousCreateError, HetznerError, type HetznerFailure } from './errors.ts';
import { redactor } from './redaction.ts';
import { ErrorDocument } from './resources.ts';
import { backoffMs, MAX_ATTEMPTS, RATE_LIMIT_BUDGET_MS, rateLimitDelayMs } from './retry-policy.ts';

/** Where the client speaks of waits and retries; pino's loggers fit. Never given a header or a body. */
export interface HetznerLog {
  warn(fields: Readonly<Record<string, string | number | null>>, message: string): void;
}

/** How to reach the API. `fetch` carries one HTTP exchange (a crash-point test cuts there). */
export interface TransportOptions {
  readonly baseUrl: string;
  readonly token: string;
  readonly clock: HetznerClock;
  readonly random: () => number;
  readonly log?: HetznerLog;
  readonly signal?: AbortSignal;
  readonly requestTimeoutMs?: number;
  readonly fetch?: typeof globalThis.fetch;
}

/** One call. `repeatable` when sending it twice does nothing twice; a call that is not is a create. */
export interface Call<T> {
  readonly method: 'get' | 'post' | 'delete';
  readonly path: string;
  readonly query?: readonly (readonly [string, string])[];
  readonly body?: unknown;
  readonly answer: v.GenericSchema<unknown, T>;
  readonly repeatable: boolean;
}

/** Sends a call under the retry policy and returns its parsed answer. Throws HetznerError or AmbiguousCreateError, nothing of ky. */
export type Send = <T>(call: Call<T>) => Promise<T>;

type Outcome<T> = { readonly value: T } | (HetznerFailure & { readonly kind: FailureKind; readonly headers: Headers });
/** `refused`: not executed; `limited`: not executed, later perhaps; `busy`: not executed, at once perhaps; `unclear`: perhaps executed. */
type FailureKind = 'refused' | 'limited' | 'busy' | 'unclear';

const DEFAULT_REQUEST_TIMEOUT_MS = 30_000;

/**
 * Makes the one function that talks to the API. The token stays in this closure. Refuses, with a TypeError, a base URL that is
 * neither https nor plain http to loopback.
 */
export function createTransport(options: TransportOptions): Send {
  const { clock, random, signal } = options;
  const exchange = createExchange(options);
  return async (call) => {
    let failures = 0;
    let limitedTimes = 0;
    let limitedMs = 0;
    for (;;) {
      signal?.throwIfAborted();
      const outcome = await exchange(call);
      if ('value' in outcome) return outcome.value;
      const wait = (ms: number) => {
        options.log?.warn(
          { call: `${call.method} ${call.path}`, code: outcome.code, status: outcome.status, wait_ms: ms },
          'Hetzner call is repeated',
        );
        return clock.sleep(ms, signal);
      };
      if (outcome.kind === 'limited') {
        limitedTimes += 1;
        const ms = rateLimitDelayMs(outcome.headers, { now: clock.now(), failures: limitedTimes, random });
        limitedMs += ms;
        if (limitedMs > RATE_LIMIT_BUDGET_MS) throw new HetznerError(outcome);
        await wait(ms);
        continue;
      }
      failures += 1;
      const transient = outcome.kind === 'busy' || outcome.kind === 'unclear';
      if (call.repeatable && transient && failures < MAX_ATTEMPTS) {
        await wait(backoffMs(failures, random));
        continue;
      }
      throw !call.repeatable && outcome.kind === 'unclear'
        ? new AmbiguousCreateError(outcome)
        : new HetznerError(outcome);
    }
  };
}

function createExchange({ baseUrl, token, signal, fetch, requestTimeoutMs }: TransportOptions) {
  const base = checkedBaseUrl(baseUrl);
  const redact = redactor(token);
  const timeout = requestTimeoutMs ?? DEFAULT_REQUEST_TIMEOUT_MS;
  const http = ky.create({
    retry: 0,
    timeout,
    totalTimeout: timeout,
    throwHttpErrors: false,
    // A redirect would carry the bearer token to wherever it points.
    redirect: 'manual',
    ...(fetch === undefined ? {} : { fetch: async (input, init) => fetch(input, init) }),
  });
  return async <T>(call: Call<T>): Promise<Outcome<T>> => {
    const named = `${call.method.toUpperCase()} ${call.path}`;
    let response: Response;
    let text: string;
    try {
      response = await http(new URL(call.path, base), {
        method: call.method,
        headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
        ...(call.query === undefined ? {} : { searchParams: call.query.map(([name, value]) => [name, value]) }),
        ...(call.body === undefined ? {} : { json: call.body }),
        ...(signal === undefined ? {} : { signal }),
      });
      text = await response.text();
    } catch (error) {
      signal?.throwIfAborted();
      return lost(named, error, redact);
    }
    return response.ok ? read(named, call, response, text) : failed(named, response, text, redact);
  };
}

function checkedBaseUrl(baseUrl: string): URL {
  const url = new URL(baseUrl.endsWith('/') ? baseUrl : `${baseUrl}/`);
  const loopback = url.hostname === 'localhost' || url.hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(url.hostname);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && loopback)) {
    throw new TypeError('The Hetzner API URL must be https, or http to a loopback address');
  }
  if (url.username !== '' || url.password !== '') throw new TypeError('The Hetzner API URL must not carry credentials');
  return url;
}

/** No answer. Only the system's error code is kept: ky's errors hold the request and with it the token. */
function lost<T>(named: string, error: unknown, redact: (text: string) => string): Outcome<T> {
  const timedOut = error instanceof Error && error.name === 'TimeoutError';
  const message = timedOut ? `${named}: no answer in time` : `${named}: ${redact(systemCode(error))}`;
  return {
    kind: 'unclear',
    code: timedOut ? 'timeout' : 'transport_failed',
    status: null,
    message,
    headers: new Headers(),
  };
}

function systemCode(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string') return at.code;
  }
  return 'the connection failed';
}

function read<T>(named: string, call: Call<T>, response: Response, text: string): Outcome<T> {
  const parsed = v.safeParse(call.answer, parseJson(text));
  if (parsed.success) return { value: parsed.output };
  const where = v.getDotPath(parsed.issues[0]) ?? 'document';
  const message = `${named}: the answer cannot be read (${where})`;
  return { kind: 'unclear', code: 'answer_unreadable', message, ...about(response) };
}

function failed<T>(named: string, response: Response, text: string, redact: (text: string) => string): Outcome<T> {
  const parsed = v.safeParse(ErrorDocument, parseJson(text));
  const code = parsed.success ? redact(parsed.output.error.code) : `http_${response.status}`;
  const said = parsed.success
    ? `${parsed.output.error.message}${namedFields(parsed.output.error.details)}`
    : 'no error document';
  const message = redact(`${named}: ${response.status} ${code}: ${said}`).slice(0, 500);
  return { kind: failureKind(response.status, code), code, message, ...about(response) };
}

function failureKind(status: number, code: string): FailureKind {
  if (status === 429) return 'limited';
  if (status >= 500) return 'unclear';
  return code === 'conflict' || code === 'locked' ? 'busy' : 'refused';
}

function about(response: Response) {
  return {
    status: response.status,
    headers: response.headers,
    correlationId: response.headers.get('x-correlation-id') ?? undefined,
  };
}

/** The fields that `invalid_input` complains about, for the operator who has to correct them. */
function namedFields(details: unknown): string {
  const parsed = v.safeParse(v.looseObject({ fields: v.array(v.looseObject({ name: v.string() })) }), details);
  return parsed.success ? ` (${parsed.output.fields.map((field) => field.name).join(', ')})` : '';
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
