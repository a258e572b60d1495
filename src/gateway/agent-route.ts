import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import type { Context, Handler } from 'hono';
import * as v from 'valibot';
import type { Authenticated } from '../domain/certificate/authenticate.ts';
import { RequestId } from '../protocol/identifiers.ts';
import { BODY_MAX_BYTES } from '../protocol/limits.ts';
import type { CommandOptions } from '../transactor/command.ts';
import {
  type Answer,
  type BodyReading,
  type Download,
  invalid,
  problem,
  readBody,
  refused,
  toResponse,
} from './answer.ts';
import { faultAnswer } from './faults.ts';
import type { Tick } from './loader.ts';
import { peerOf } from './peer-gate.ts';
import type { Services } from './services.ts';

/** hono's context on node's own request and response. */
export type HttpContext = Context<{ Bindings: HttpBindings }>;

/** An authenticated request whose body is what its route takes. */
export interface AgentCall<B> {
  readonly fingerprint: string;
  readonly agent: Authenticated;
  /** The moment at which the agent was authenticated; it began after the request came. */
  readonly tick: Tick;
  readonly body: B;
  readonly context: HttpContext;
}

/** Errors of a body beyond the cap: where a certificate request is all that can be so large, it is that one's. */
type TooLarge = 'body_too_large' | 'csr_too_large';

/** One route: how it is counted, what it takes, what it does. */
export interface AgentRoute<B> {
  readonly name: string;
  readonly body: v.GenericSchema<unknown, B> | undefined;
  /** What a body beyond the cap is answered with, where that is not `body_too_large`. */
  readonly tooLarge?: TooLarge;
  readonly handle: (call: AgentCall<B>, services: Services) => Promise<Answer | Download> | Answer | Download;
}

/**
 * Authenticates, then reads the body, then handles. The certificate of the connection says who asks; nothing in a body does.
 * Every answer is counted; a 401 closes the connection.
 */
export function agentRoute<B>(services: Services, { name, body: schema, tooLarge, handle }: AgentRoute<B>): Handler {
  const answer = async (context: HttpContext): Promise<Answer | Download> => {
    const { incoming } = context.env;
    const peer = peerOf(incoming.socket);
    if (peer === undefined) return problem('certificate_unknown');
    if (peer.expired) return problem('certificate_expired');
    const reading = schema === undefined ? undefined : readBody(incoming, BODY_MAX_BYTES);
    const { tick, result } = await services.loader.identify(peer.fingerprint);
    if (!result.ok) return refused(result.refusal);
    const parsed = reading === undefined ? undefined : parseBody(await reading, schema, tooLarge);
    if (parsed !== undefined && !parsed.ok) return parsed.answer;
    const body = parsed?.value as B;
    return handle({ fingerprint: peer.fingerprint, agent: result.value, tick, body, context }, services);
  };
  return async (context: HttpContext) => {
    const answered = await answer(context).catch((error: unknown) => faultAnswer(error, name, services.log));
    services.metrics.answered(name, answered.status);
    return toResponse(answered, services.wakes.stopping.aborted);
  };
}

/** Reads JSON by a closed schema. Refuses what is not UTF-8, since U+FFFD in its place would be somebody else's text. */
export function parseBody<B>(
  reading: BodyReading,
  schema: v.GenericSchema<unknown, B> | undefined,
  tooLarge: TooLarge = 'body_too_large',
): { readonly ok: true; readonly value: B } | { readonly ok: false; readonly answer: Answer } {
  if (!reading.ok) {
    // What was not read is still on the connection.
    return {
      ok: false,
      answer: { ...problem(reading.reason === 'too_large' ? tooLarge : 'invalid_request'), close: true },
    };
  }
  if (schema === undefined || !isUtf8(reading.bytes)) return { ok: false, answer: problem('invalid_request') };
  let json: unknown;
  try {
    json = JSON.parse(reading.bytes.toString());
  } catch {
    return { ok: false, answer: problem('invalid_request') };
  }
  const parsed = v.safeParse(schema, json, { abortEarly: true });
  return parsed.success
    ? { ok: true, value: parsed.output }
    : { ok: false, answer: invalid(describe(parsed.issues[0])) };
}

/** Where and what was expected. A key that the schema does not know is the sender's own text, so it is not repeated. */
function describe(issue: v.BaseIssue<unknown>): string {
  if (issue.expected === 'never') return 'The body has a field that this route does not take.';
  return `${v.getDotPath(issue) ?? 'body'}: expected ${issue.expected ?? issue.requirement?.toString() ?? 'something else'}`;
}

/** How a command of this call is given: in the agent's name, under the request's id, dropped when the agent goes away. */
export function commandOptions({ agent, context }: AgentCall<unknown>): CommandOptions {
  return {
    actor: { kind: 'agent', id: agent.node.node_id },
    correlationId: correlationId(context.env.incoming),
    signal: goneSignal(context),
  };
}

/** The request's own X-Request-Id where it is a UUID (free text does not get into the log), else a new one. */
export function correlationId(incoming: IncomingMessage): string {
  const given = incoming.headers['x-request-id'];
  return v.is(RequestId, given) ? given : randomUUID();
}

const goneSignals = new WeakMap<object, AbortSignal>();

/** Aborted when the client goes away before it was answered. One signal a request, however often it is asked for. */
export function goneSignal({ env: { outgoing } }: HttpContext): AbortSignal {
  const known = goneSignals.get(outgoing);
  if (known !== undefined) return known;
  const gone = new AbortController();
  if (outgoing.destroyed) gone.abort();
  outgoing.once('close', () => gone.abort());
  goneSignals.set(outgoing, gone.signal);
  return gone.signal;
}
