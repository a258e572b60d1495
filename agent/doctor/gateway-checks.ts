import { lookup } from 'node:dns/promises';
import { Client } from 'undici';
import { type AgentConfig, hostOf } from '../config.ts';
import { GatewayClient } from '../gateway-client.ts';
import type { Answer } from '../https-json.ts';
import { describeError } from '../log.ts';
import { systemTime } from '../time.ts';
import { type CheckContext, type FoundIdentity, fail, type GatewayProbe, pass, type Verdict, warn } from './verdict.ts';

/** Date is in whole seconds and the answer takes its time: less than this is no difference. */
const CLOCK_PASS_MS = 5_000;
/** Certificates are backdated by as much; DESIGN §5. */
const CLOCK_FAIL_MS = 60_000;

/** Both listeners' names resolve. */
export async function dnsCheck({ config }: CheckContext): Promise<Verdict> {
  const hosts = [config.gatewayUrl, config.enrollUrl].map(hostOf).filter(({ isAddress }) => !isAddress);
  const names = [...new Set(hosts.map(({ host }) => host))];
  if (names.length === 0) return pass('the gateway is named by its address');
  const found = await Promise.all(names.map(async (name) => `${name} is ${(await lookup(name)).address}`));
  return pass(found.join(', '));
}

/** The gateway answers over mTLS with the staged identity. */
export async function gatewayCheck({ gateway }: CheckContext): Promise<Verdict> {
  return (await gateway()).health;
}

/** The local clock and the gateway's agree. */
export async function clockCheck({ gateway }: CheckContext): Promise<Verdict> {
  const { clockAheadMs } = await gateway();
  if (clockAheadMs === null) return warn('the gateway named no time to compare with');
  const offMs = Math.abs(clockAheadMs);
  if (offMs < CLOCK_PASS_MS) return pass('agrees with the gateway');
  const detail = `the local clock is ${Math.round(offMs / 1_000)} s ${clockAheadMs > 0 ? 'ahead of' : 'behind'} the gateway's`;
  return offMs < CLOCK_FAIL_MS ? warn(detail) : fail(detail);
}

/** Asks for the gateway's health over mTLS, and where no answer came, for the time alone, unverified. */
export async function probeGateway(
  config: AgentConfig,
  identity: FoundIdentity,
  signal: AbortSignal,
): Promise<GatewayProbe> {
  if (identity === undefined || 'problem' in identity) {
    return { health: fail('no identity to present'), clockAheadMs: await unverifiedClockAheadMs(config, signal) };
  }
  const client = new GatewayClient(config.gatewayUrl, identity, systemTime);
  try {
    const answer = await client.healthz(signal);
    const serverTimeMs = 'time' in answer ? answer.time.serverTimeMs : null;
    const clockAheadMs =
      serverTimeMs === null ? await unverifiedClockAheadMs(config, signal) : Date.now() - serverTimeMs;
    return { health: healthOf(answer), clockAheadMs };
  } finally {
    await client.close();
  }
}

function healthOf(answer: Answer<unknown>): Verdict {
  switch (answer.kind) {
    case 'ok':
      return pass('healthy');
    case 'refused':
      return fail(`answered ${answer.refusal.status} ${answer.refusal.code ?? ''}`.trimEnd());
    case 'unreachable':
      return fail(answer.reason);
    case 'aborted':
      return fail('no answer in time');
  }
}

/**
 * How far the local clock is ahead, by the enrolment listener's Date header. A clock that is wrong enough makes every
 * certificate invalid, so this one asks without verifying: it presents nothing, and what it hears is only shown to a person.
 */
async function unverifiedClockAheadMs({ enrollUrl }: AgentConfig, signal: AbortSignal): Promise<number | null> {
  const client = new Client(enrollUrl, { connect: { rejectUnauthorized: false, timeout: 3_000 }, allowH2: false });
  try {
    const response = await client.request({ method: 'GET', path: '/', signal, headersTimeout: 3_000 });
    await response.body.dump();
    const date = Date.parse(String(response.headers['date']));
    return Number.isNaN(date) ? null : Date.now() - date;
  } catch (error) {
    if (signal.aborted) throw new Error(describeError(error), { cause: error });
    return null;
  } finally {
    await client.destroy();
  }
}
