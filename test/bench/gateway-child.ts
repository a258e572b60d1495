import { pino } from 'pino';
import { readGatewayConfig } from '../../src/gateway/config.ts';
import { startGateway } from '../../src/gateway/gateway.ts';

/** A gateway as a process of its own, that takes enrolments as fast as they come. Its environment is a gateway's. Tells its addresses. */
const UNLIMITED = { perSecond: 1e6, burst: 1e6 };
const rates = { perAddress: UNLIMITED, shared: UNLIMITED, reserve: UNLIMITED, perAwaitedNode: UNLIMITED };

const reading = readGatewayConfig(process.env, '0.0.0-bench');
if (!reading.ok) throw new Error(reading.message);
const { agentUrl, enrollUrl } = await startGateway(reading.config, {
  log: pino({ level: 'warn' }, pino.destination(2)),
  rates,
});
process.send?.({ agentUrl, enrollUrl });
