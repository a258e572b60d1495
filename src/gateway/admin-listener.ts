import { createServer } from 'node:http';
import { Hono } from 'hono';
import { problem, toResponse } from './answer.ts';
import { isLoopback } from './config.ts';
import { faultAnswer } from './faults.ts';
import { GatewayConfigurationError, type Listener, listen, requestListener } from './listener.ts';
import type { Services } from './services.ts';

/**
 * Starts the listener for this host alone: GET /healthz (does the database answer, and is written what agents say), /status (JSON), /metrics (Prometheus).
 * Throws {@link GatewayConfigurationError} for an address that others could reach.
 */
export async function startAdminListener(services: Services, status: () => object): Promise<Listener> {
  const { config, log, metrics, loader, liveness } = services;
  const variable = 'PUSHLEFT_GATEWAY_ADMIN_BIND';
  if (!isLoopback(config.adminBind.host)) throw new GatewayConfigurationError(`${variable} is not a loopback address`);
  const app = new Hono();
  app.get('/healthz', async (context) => {
    await loader.tick();
    if (liveness.stalled) return toResponse(problem('unavailable'));
    return context.json({ status: 'ok' });
  });
  app.get('/status', (context) => context.json(status()));
  app.get('/metrics', async (context) =>
    context.body(await metrics.registry.metrics(), 200, { 'content-type': metrics.registry.contentType }),
  );
  app.notFound(() => toResponse(problem('not_found')));
  app.onError((error) => toResponse(faultAnswer(error, 'admin', log)));
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 5_000 }, requestListener(app));
  return listen(server, config.adminBind, { variable, scheme: 'http' });
}
