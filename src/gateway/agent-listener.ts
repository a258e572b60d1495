import { createServer } from 'node:https';
import { Hono } from 'hono';
import type { PkiSet } from '../pki/pki-set.ts';
import { completePath, HEALTH_PATH, heartbeatPath, IDENTITY_PATH, LEASE_PATH, RENEW_PATH } from '../protocol/routes.ts';
import { agentRoute } from './agent-route.ts';
import { toResponse } from './answer.ts';
import { type ConnectionLimits, limitConnections } from './connection-limits.ts';
import { faultAnswer } from './faults.ts';
import { followPki, type Listener, listen, requestListener, TLS_SERVER_OPTIONS } from './listener.ts';
import { guardPeers } from './peer-gate.ts';
import { complete } from './routes/complete.ts';
import { healthz } from './routes/healthz.ts';
import { heartbeat } from './routes/heartbeat.ts';
import { identity } from './routes/identity.ts';
import { lease } from './routes/lease.ts';
import { notFound } from './routes/not-found.ts';
import { renew } from './routes/renew.ts';
import { source } from './routes/source.ts';
import type { Services } from './services.ts';

/** Each agent holds one connection for its polls and one for its heartbeats; several hundred may come from behind one address. */
const CONNECTIONS: ConnectionLimits = { perAddress: 1_000, total: 20_000 };

/** Whom the listener shows itself as, and whom it asks for. */
const secureContext = ({ gatewayKeyPem: key, gatewayCertPem: cert, bundlePem: ca }: PkiSet) => ({ key, cert, ca });

/** Starts the mTLS listener for agents (DESIGN §4). */
export function startAgentListener(services: Services): Promise<Listener> {
  const { pki, config, log } = services;
  const app = new Hono();
  app.post(LEASE_PATH, agentRoute(services, lease));
  app.post(heartbeatPath(':id'), agentRoute(services, heartbeat));
  app.post(completePath(':id'), agentRoute(services, complete));
  app.get('/v1/agent/jobs/:id/source', agentRoute(services, source));
  app.get(IDENTITY_PATH, agentRoute(services, identity));
  app.post(RENEW_PATH, agentRoute(services, renew));
  app.get(HEALTH_PATH, agentRoute(services, healthz));
  app.all('*', agentRoute(services, notFound));
  app.onError((error) => toResponse(faultAnswer(error, 'other', log)));
  const server = createServer(
    {
      ...TLS_SERVER_OPTIONS,
      ...secureContext(pki.current),
      requestCert: true,
      rejectUnauthorized: false, // guardPeers decides, since an expired certificate is to be told so
    },
    requestListener(app),
  );
  limitConnections(server, CONNECTIONS);
  followPki(server, pki, secureContext);
  guardPeers(server, () => pki.current.trustedCas);
  return listen(server, config.agentBind, { variable: 'PUSHLEFT_GATEWAY_BIND', scheme: 'https' });
}
