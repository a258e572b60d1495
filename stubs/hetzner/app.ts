import { createHash, randomBytes } from 'node:crypto';
import { Hono, type MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import * as v from 'valibot';
import { actionRoutes, resourceActionRoutes } from './actions.ts';
import { imageRoutes, locationRoutes, serverTypeRoutes } from './catalogue.ts';
import { ApiError } from './errors.ts';
import { faultInjection } from './fault-injection.ts';
import type { FaultPlan } from './faults.ts';
import { firewallRoutes } from './firewalls.ts';
import type { StubEnv } from './http.ts';
import { placementGroupRoutes } from './placement-groups.ts';
import type { Project } from './project.ts';
import type { RateLimiter } from './rate-limit.ts';
import { serverRoutes } from './servers.ts';
import { sshKeyRoutes } from './ssh-keys.ts';
import type { StubState } from './state.ts';

const MAX_BODY_BYTES = 1024 * 1024;
/** Requests that are remembered; the oldest are forgotten first. */
const REQUESTS_KEPT = 10_000;

/** A request as the stub saw it. `status` is null while it is unanswered, and for ever when its answer was lost. */
export interface RequestRecord {
  readonly atMs: number;
  readonly method: string;
  readonly path: string;
  /** The query with its question mark; empty when there is none. */
  readonly query: string;
  status: number | null;
}

/** What the HTTP side of the stub needs. */
interface AppParts {
  readonly project: Project;
  readonly faults: FaultPlan;
  readonly rateLimiter: RateLimiter;
  readonly requests: RequestRecord[];
  /** The only bearer token that is let in; undefined: any that is not empty. */
  readonly token: string | undefined;
  /** Brings the project up to date with its clock. */
  readonly tick: () => void;
  /** Makes what a request has changed durable, before it is answered. */
  readonly save: () => Promise<void>;
  readonly logFault: (error: unknown) => void;
  /** Fires when the stub closes. */
  readonly closing: AbortSignal;
}

/**
 * The API under /v1, and /_stub for tests. A request is recorded, then counted by the rate limit, then struck by the fault
 * plan, then authenticated: a fault happens to any caller, and what the rate limit refuses is not counted by the plan.
 */
export function createApp(parts: AppParts): Hono<StubEnv> {
  const { project } = parts;
  const app = new Hono<StubEnv>();
  app.onError((error, c) => {
    if (error instanceof ApiError) return c.json(error.toBody(), error.status);
    parts.logFault(error);
    return c.json(new ApiError(500, 'server_error', 'internal error').toBody(), 500);
  });
  app.notFound((c) => c.json(new ApiError(404, 'not_found', 'not found').toBody(), 404));
  app.route('/_stub', stubRoutes(parts));
  app.use(
    '/v1/*',
    record(parts),
    rateLimit(parts),
    faultInjection(parts.faults, parts.closing),
    authenticate(parts.token),
  );
  app.use('/v1/*', bodyLimit({ maxSize: MAX_BODY_BYTES, onError: bodyTooLarge }), durable(parts));
  app.route('/v1/actions', actionRoutes(project));
  app.route('/v1/servers', resourceActionRoutes(project, 'server'));
  app.route('/v1/servers', serverRoutes(project));
  app.route('/v1/firewalls', resourceActionRoutes(project, 'firewall'));
  app.route('/v1/firewalls', firewallRoutes(project));
  app.route('/v1/locations', locationRoutes(project));
  app.route('/v1/server_types', serverTypeRoutes(project));
  app.route('/v1/images', imageRoutes(project));
  app.route('/v1/ssh_keys', sshKeyRoutes(project));
  app.route('/v1/placement_groups', placementGroupRoutes(project));
  return app;
}

function bodyTooLarge(): never {
  throw new ApiError(400, 'json_error', 'request body is too large');
}

/** The status of a lost answer stays null: the connection is gone before there is one. */
function record({ project, requests, tick }: AppParts): MiddlewareHandler<StubEnv> {
  return async (c, next) => {
    const { pathname, search } = new URL(c.req.url);
    const entry: RequestRecord = {
      atMs: project.nowMs(),
      method: c.req.method,
      path: pathname,
      query: search,
      status: null,
    };
    requests.push(entry);
    if (requests.length > REQUESTS_KEPT) requests.shift();
    tick();
    c.header('X-Correlation-Id', randomBytes(16).toString('hex'));
    await next();
    if (!c.env.incoming.socket.destroyed) entry.status = c.res.status;
  };
}

function rateLimit({ project, rateLimiter }: AppParts): MiddlewareHandler<StubEnv> {
  return async (c, next) => {
    const { admitted, headers } = rateLimiter.take(bearerToken(c.req.header('authorization')) ?? '', project.nowMs());
    for (const [name, value] of Object.entries(headers)) c.header(name, value);
    if (!admitted) throw new ApiError(429, 'rate_limit_exceeded', 'limit of requests per hour reached');
    await next();
  };
}

function authenticate(token: string | undefined): MiddlewareHandler<StubEnv> {
  return async (c, next) => {
    const presented = bearerToken(c.req.header('authorization'));
    if (presented === undefined || (token !== undefined && presented !== token)) {
      throw new ApiError(401, 'unauthorized', 'unable to authenticate');
    }
    await next();
  };
}

const bearerToken = (header: string | undefined): string | undefined => /^Bearer +(\S+)$/i.exec(header ?? '')?.[1];

function durable({ save, tick }: AppParts): MiddlewareHandler<StubEnv> {
  return async (c, next) => {
    await next();
    if (c.req.method === 'GET') return;
    await save();
    tick();
  };
}

/** What tests set and see. No authentication, no rate limit, no faults; user-data is told by its digest. */
function stubRoutes({ project, faults, requests, tick }: AppParts): Hono<StubEnv> {
  return new Hono<StubEnv>()
    .put('/faults', async (c) => {
      try {
        faults.replace(await c.req.json());
      } catch (error) {
        if (!(error instanceof v.ValiError || error instanceof SyntaxError)) throw error;
        throw new ApiError(422, 'invalid_input', `not a fault plan: ${error.message}`);
      }
      return c.body(null, 204);
    })
    .get('/faults', (c) => c.json({ faults: faults.report() }))
    .get('/requests', (c) => c.json({ requests }))
    .get('/state', (c) => {
      tick();
      return c.json(publicState(project.state));
    });
}

/** The state with each server's user-data replaced by its size and SHA-256. */
const publicState = (state: StubState): object => ({
  ...state,
  servers: state.servers.map(({ userData, ...server }) => ({
    ...server,
    userDataBytes: Buffer.byteLength(userData),
    userDataSha256: createHash('sha256').update(userData).digest('hex'),
  })),
});
