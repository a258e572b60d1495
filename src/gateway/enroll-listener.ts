import { createServer } from 'node:https';
import { Hono } from 'hono';
import type { PkiSet } from '../pki/pki-set.ts';
import { ENROLL_PATH } from '../protocol/routes.ts';
import type { HttpContext } from './agent-route.ts';
import { problem, toResponse } from './answer.ts';
import type { AwaitedNodes } from './awaited-nodes.ts';
import { type ConnectionLimits, limitConnections } from './connection-limits.ts';
import { EnrollLimits, type EnrollRates } from './enroll-limits.ts';
import { faultAnswer } from './faults.ts';
import { followPki, type Listener, listen, requestListener, TLS_SERVER_OPTIONS } from './listener.ts';
import { enrollRoute } from './routes/enroll.ts';
import type { Services } from './services.ts';

/** Strangers may connect here; a host that enrols needs one connection. */
const CONNECTIONS: ConnectionLimits = { perAddress: 64, total: 1_000 };

/** Whom the listener shows itself as; it asks nobody for a certificate. */
const secureContext = ({ gatewayKeyPem: key, gatewayCertPem: cert }: PkiSet) => ({ key, cert });

/** Starts the listener with the one enrolment route: the server proves itself, the client only by its secret (DESIGN §4). */
export function startEnrollListener(
  services: Services,
  { rates, awaited }: { rates: EnrollRates; awaited: AwaitedNodes },
): Promise<Listener> {
  const { pki, config, log, metrics } = services;
  const limits = new EnrollLimits(rates, (nodeId) => awaited.has(nodeId));
  const app = new Hono();
  app.post(ENROLL_PATH, async (context: HttpContext) => {
    awaited.touch();
    const answer = await enrollRoute(context, services, limits).catch((error: unknown) =>
      faultAnswer(error, 'enroll', log),
    );
    metrics.answered('enroll', answer.status);
    return toResponse(answer, services.wakes.stopping.aborted);
  });
  app.notFound(() => {
    metrics.answered('enroll_other', 404);
    return toResponse(problem('not_found'));
  });
  app.onError((error) => toResponse(faultAnswer(error, 'enroll_other', log)));
  const server = createServer(
    { ...TLS_SERVER_OPTIONS, keepAliveTimeout: 5_000, ...secureContext(pki.current) },
    requestListener(app),
  );
  limitConnections(server, CONNECTIONS);
  followPki(server, pki, secureContext);
  server.on('tlsClientError', (_, socket) => socket.destroy());
  return listen(server, config.enrollBind, { variable: 'PUSHLEFT_AGENT_ENROLL_BIND', scheme: 'https' });
}
