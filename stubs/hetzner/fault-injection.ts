import { setTimeout as delay } from 'node:timers/promises';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context, MiddlewareHandler } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { ApiError } from './errors.ts';
import type { Fault, FaultPlan } from './faults.ts';
import type { StubEnv } from './http.ts';
import type { ActionFate } from './project.ts';

/** Does to each request what the plan has for it. What is still delayed when `closing` fires is dropped. */
export function faultInjection(plan: FaultPlan, closing: AbortSignal): MiddlewareHandler<StubEnv> {
  return async (c, next) => {
    const fault = plan.strike(c.req.method, c.req.path);
    c.set('fateOf', (command) => fateOf(fault, command));
    if (fault === undefined) return next();
    if (fault.delayMs !== undefined && !(await delayed(c, fault.delayMs, closing))) return dropConnection(c);
    switch (fault.kind) {
      case 'drop':
        return dropConnection(c);
      case 'status':
        setHeaders(c, fault.headers);
        return answer(c, fault.status, fault.code, fault.message, fault.details);
      case 'lose_response':
        await next();
        replaceResponse(c, dropConnection(c));
        return;
      case 'handle_then_status':
        await next();
        replaceResponse(c, answer(c, fault.status, fault.code));
        setHeaders(c, fault.headers);
        return;
      case 'headers':
        await next();
        setHeaders(c, fault.headers);
        return;
      case 'delay':
      case 'action_error':
      case 'never_finishes':
        return next();
    }
  };
}

/**
 * False when the stub closes meanwhile. The body is read before: Node throws an unread one away when its sender dies, and a
 * create that is still in flight then is exactly what a delay is for.
 */
async function delayed(c: Context<StubEnv>, delayMs: number, signal: AbortSignal): Promise<boolean> {
  await c.req.text();
  return delay(delayMs, true, { signal, ref: false }).catch(() => false);
}

function fateOf(fault: Fault | undefined, command: string): ActionFate {
  if (fault?.kind !== 'action_error' && fault?.kind !== 'never_finishes') return {};
  if (fault.command !== undefined && fault.command !== command) return {};
  return fault.kind === 'never_finishes' ? { never: true } : { error: { code: fault.code, message: fault.message } };
}

function dropConnection(c: Context<StubEnv>): Response {
  c.env.incoming.socket.destroy();
  return RESPONSE_ALREADY_SENT;
}

const answer = (c: Context<StubEnv>, status: number, code: string, message = code, details: object = {}): Response =>
  c.json(new ApiError(400, code, message, details).toBody(), status as ContentfulStatusCode);

function setHeaders(c: Context<StubEnv>, headers: Readonly<Record<string, string>> = {}): void {
  for (const [name, value] of Object.entries(headers)) c.header(name, value);
}

/** Setting `c.res` over an answer would merge the two; the first one is taken away before. */
function replaceResponse(c: Context<StubEnv>, response: Response): void {
  c.res = undefined;
  c.res = response;
}
