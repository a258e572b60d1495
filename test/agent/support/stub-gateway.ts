import { createHash, X509Certificate } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import * as v from 'valibot';
import { EnrollRequest } from '../../../src/protocol/enroll.ts';
import type { IdentityResponse } from '../../../src/protocol/identity.ts';
import { CompleteRequest, HeartbeatRequest } from '../../../src/protocol/jobs.ts';
import { LeaseRequest } from '../../../src/protocol/lease.ts';
import { RenewRequest } from '../../../src/protocol/renew.ts';
import type { Authority } from './authority.ts';

/** An answer; `drop` closes the connection without one, `hold` never answers. */
export type Reply =
  | { readonly status: number; readonly body: object | Buffer; readonly headers?: Readonly<Record<string, string>> }
  | 'drop'
  | 'hold';

/** What a route was sent: a checked body, the client certificate's CN, and whether the exchange is over. */
interface Received<Body> {
  readonly body: Body;
  readonly commonName: string | undefined;
  readonly certificate: X509Certificate | undefined;
  readonly jobId: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly closed: AbortSignal;
}

/** One route's behaviour, exchangeable while it runs. */
export type Behaviour<Body> = (received: Received<Body>) => Reply | Promise<Reply>;

/** A lease, heartbeat and enrolment server over real TLS, which answers what the test tells it. */
export interface StubGateway extends AsyncDisposable {
  readonly gatewayUrl: string;
  readonly enrollUrl: string;
  lease: Behaviour<LeaseRequest>;
  heartbeat: Behaviour<HeartbeatRequest>;
  complete: Behaviour<CompleteRequest>;
  /** Of a build; a body that is a buffer is sent as it is. */
  source: Behaviour<undefined>;
  healthz: Behaviour<undefined>;
  identity: Behaviour<undefined>;
  renew: Behaviour<RenewRequest>;
  enroll: Behaviour<EnrollRequest>;
  /** Closes both listeners and every connection; the ports stay its own. */
  goAway(): Promise<void>;
  /** Listens on the same ports again. */
  comeBack(): Promise<void>;
}

/** A log head that the protocol accepts. */
export const LOG_HEAD = '1.42.c0ffee';

/** 200 without a job. */
export const idle = (): Reply => ({ status: 200, body: { job: null, target_version: null, log_head: LOG_HEAD } });

/** 200 with a job whose lease lasts `leaseMs`. */
export function grant(
  jobId: string,
  leaseMs: number,
  job: { kind?: string; payload?: unknown; token?: string } = {},
): Reply {
  const { kind = 'diagnose_host', payload = {}, token = `token-of-${jobId}-0123456789` } = job;
  return {
    status: 200,
    body: {
      job: {
        id: jobId,
        kind,
        payload,
        lease_token: token,
        lease_expires_at: new Date(Date.now() + leaseMs).toISOString(),
      },
      target_version: null,
      log_head: LOG_HEAD,
    },
  };
}

/** An error as the gateway words it. */
export function problem(status: number, error: string, more: object = {}, headers: Record<string, string> = {}): Reply {
  return { status, body: { error, message: 'said by the stub', ...more }, headers };
}

/**
 * Enrolment as the gateway does it: the first key that a secret comes with gets a certificate, and again when its answer was lost;
 * any other key is refused. `keys` counts the distinct keys that were seen.
 */
export function enrollingWith(
  authority: Authority,
  secret: string,
): { readonly behaviour: Behaviour<EnrollRequest>; readonly keys: Set<string> } {
  const keys = new Set<string>();
  let granted: { readonly key: string; readonly certificatePem: string } | undefined;
  return {
    keys,
    behaviour: async ({ body }) => {
      const certificatePem = await authority.issue(body.csr_pem);
      const key = keyDigest(certificatePem);
      keys.add(key);
      if (body.enrollment_secret !== secret) return problem(401, 'enrollment_refused');
      granted ??= { key, certificatePem };
      return granted.key === key ? certified(authority, granted.certificatePem) : problem(401, 'enrollment_refused');
    },
  };
}

/** 200 of an identity: the connection's own certificate, and whether a renewal would be granted. */
export function identified(
  certificate: X509Certificate | undefined,
  reason: 'lifetime' | 'issuer' | null = null,
): Reply {
  if (certificate === undefined) return problem(401, 'certificate_unknown');
  const body: IdentityResponse = {
    node_id: certificate.subject.replace(/^CN=/, ''),
    status: 'active',
    certificate: {
      fingerprint_sha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
      serial: certificate.serialNumber.toLowerCase(),
      not_before: certificate.validFromDate.toISOString(),
      not_after: certificate.validToDate.toISOString(),
    },
    trust_bundle_sha256: 'b'.repeat(64),
    renewal: { due: reason !== null, reason },
  };
  return { status: 200, body };
}

/**
 * Renewal as the gateway does it: a certificate for each key, the same one again for the same key. `keys` counts the distinct keys that were
 * seen.
 */
export function renewingBy(authority: Authority): {
  readonly behaviour: Behaviour<RenewRequest>;
  readonly keys: Set<string>;
} {
  const granted = new Map<string, string>();
  const keys = new Set<string>();
  return {
    keys,
    behaviour: async ({ body }) => {
      const issued = await authority.issue(body.csr_pem);
      const key = keyDigest(issued);
      keys.add(key);
      granted.set(key, granted.get(key) ?? issued);
      return certified(authority, granted.get(key) ?? issued);
    },
  };
}

/** 200 of an enrolment or a renewal. */
export function certified(authority: Authority, certificatePem: string): Reply {
  const notAfter = new X509Certificate(certificatePem).validToDate.toISOString();
  return { status: 200, body: { certificate_pem: certificatePem, ca_pem: authority.caPem, not_after: notAfter } };
}

function keyDigest(certificatePem: string): string {
  const spki = new X509Certificate(certificatePem).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest('hex');
}

/** Starts both listeners on free ports of 127.0.0.1. */
export async function startStubGateway(authority: Authority): Promise<StubGateway> {
  const stub = {
    lease: idle as Behaviour<LeaseRequest>,
    heartbeat: (() => heartbeatFor(60_000)) as Behaviour<HeartbeatRequest>,
    complete: (() => ({ status: 200, body: {} })) as Behaviour<CompleteRequest>,
    source: (() => problem(409, 'lease_conflict')) as Behaviour<undefined>,
    healthz: (() => ({ status: 200, body: { status: 'ok' } })) as Behaviour<undefined>,
    identity: (({ certificate }) => identified(certificate)) as Behaviour<undefined>,
    renew: (() => problem(409, 'renewal_not_due')) as Behaviour<RenewRequest>,
    enroll: (() => problem(401, 'enrollment_refused')) as Behaviour<EnrollRequest>,
  };
  const agents = createServer(
    { ...authority.server, ca: authority.caPem, requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3' },
    (request, response) => void answer(request, response, (path) => routeOf(path, stub)),
  );
  const enrolments = createServer({ ...authority.server, minVersion: 'TLSv1.3' }, (request, response) => {
    void answer(request, response, (path) =>
      path === '/v1/enroll' ? { schema: EnrollRequest, behave: (received) => stub.enroll(received) } : undefined,
    );
  });
  const ports = [await listen(agents, 0), await listen(enrolments, 0)] as const;
  const goAway = () => Promise.all([close(agents), close(enrolments)]).then(() => undefined);
  return Object.assign(stub, {
    gatewayUrl: `https://127.0.0.1:${ports[0]}`,
    enrollUrl: `https://127.0.0.1:${ports[1]}`,
    goAway,
    comeBack: async () => {
      await Promise.all([listen(agents, ports[0]), listen(enrolments, ports[1])]);
    },
    [Symbol.asyncDispose]: goAway,
  });
}

/** 200 of a heartbeat that extends the lease by `leaseMs` from now. */
export function heartbeatFor(leaseMs: number): Reply {
  return { status: 200, body: { lease_expires_at: new Date(Date.now() + leaseMs).toISOString() } };
}

interface Route {
  readonly schema: v.GenericSchema | undefined;
  readonly behave: (received: Received<never>) => Reply | Promise<Reply>;
}

type Routes = Omit<
  StubGateway,
  'enroll' | 'gatewayUrl' | 'enrollUrl' | 'goAway' | 'comeBack' | typeof Symbol.asyncDispose
>;

function routeOf(path: string, stub: Routes): Route | undefined {
  if (path === '/healthz') return { schema: undefined, behave: (received) => stub.healthz(received) };
  if (path === '/v1/agent/identity') return { schema: undefined, behave: (received) => stub.identity(received) };
  if (path === '/v1/agent/certificate/renew')
    return { schema: RenewRequest, behave: (received) => stub.renew(received) };
  if (path === '/v1/agent/lease') return { schema: LeaseRequest, behave: (received) => stub.lease(received) };
  if (path.endsWith('/heartbeat')) return { schema: HeartbeatRequest, behave: (received) => stub.heartbeat(received) };
  if (path.endsWith('/source')) return { schema: undefined, behave: (received) => stub.source(received) };
  if (path.endsWith('/complete')) return { schema: CompleteRequest, behave: (received) => stub.complete(received) };
  return undefined;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  find: (path: string) => Route | undefined,
): Promise<void> {
  const closed = new AbortController();
  response.once('close', () => closed.abort());
  const path = request.url ?? '/';
  const route = find(path);
  if (route === undefined) return send(response, problem(404, 'not_found'));
  const text = Buffer.concat(await request.toArray()).toString();
  const body = route.schema === undefined ? undefined : v.safeParse(route.schema, JSON.parse(text));
  if (body !== undefined && !body.success) return send(response, problem(400, 'invalid_request'));
  const received = {
    body: body?.output as never,
    commonName: certificateOf(request)?.subject.replace(/^CN=/, ''),
    certificate: certificateOf(request),
    jobId: /^\/v1\/agent\/jobs\/([^/]+)\//.exec(path)?.[1],
    headers: request.headers,
    closed: closed.signal,
  };
  send(response, await route.behave(received));
}

function certificateOf(request: IncomingMessage): X509Certificate | undefined {
  return request.socket instanceof TLSSocket ? request.socket.getPeerX509Certificate() : undefined;
}

function send(response: ServerResponse, reply: Reply): void {
  if (reply === 'hold') return;
  if (reply === 'drop') {
    response.socket?.destroy();
    return;
  }
  const isBytes = Buffer.isBuffer(reply.body);
  const type = isBytes ? 'application/octet-stream' : 'application/json';
  response.writeHead(reply.status, { 'content-type': type, ...reply.headers });
  response.end(isBytes ? reply.body : JSON.stringify(reply.body));
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

function close(server: Server): Promise<void> {
  if (!server.listening) return Promise.resolve();
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
