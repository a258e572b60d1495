import {
  DETAIL_MAX_LENGTH,
  DOCTOR_CHECKS,
  type DoctorCheck,
  type DoctorFinding,
  type DoctorReport,
} from '../src/protocol/job-kinds/diagnose-host.ts';
import { toBoundedText } from '../src/protocol/text.ts';
import type { AgentConfig } from './config.ts';
import { clockCheck, dnsCheck, gatewayCheck, probeGateway } from './doctor/gateway-checks.ts';
import { bridgeNetfilterCheck, dataMountCheck, diskSpaceCheck, dockerCheck } from './doctor/host-checks.ts';
import { certificateCheck, stateFilesCheck } from './doctor/identity-checks.ts';
import { type CheckContext, fail, type Verdict } from './doctor/verdict.ts';
import { IdentityStore } from './identity-store.ts';
import { describeError } from './log.ts';
import { diskFs } from './state-fs.ts';
import { systemTime } from './time.ts';

/** No check takes longer; one that does is a finding of its own. */
const CHECK_TIMEOUT_MS = 10_000;

type Check = (context: CheckContext) => Promise<Verdict>;

const CHECKS: Readonly<Record<DoctorCheck, Check>> = {
  state_files: stateFilesCheck,
  certificate: certificateCheck,
  dns: dnsCheck,
  gateway: gatewayCheck,
  clock: clockCheck,
  disk_space: diskSpaceCheck,
  data_mount: dataMountCheck,
  docker: dockerCheck,
  bridge_netfilter: bridgeNetfilterCheck,
};

/**
 * Runs the checks side by side, each bounded in time, and reports them in their own order. Never throws for what it finds:
 * a check that throws has failed. Rejects with the signal's reason when it is aborted.
 */
export async function diagnose(
  config: AgentConfig,
  wanted: readonly DoctorCheck[] | undefined,
  signal: AbortSignal,
): Promise<DoctorReport> {
  const startedMs = systemTime.nowMs();
  const context = await prepare(config, signal);
  const chosen = DOCTOR_CHECKS.filter((check) => wanted === undefined || wanted.includes(check));
  const checks = await Promise.all(chosen.map((check) => runCheck(check, context)));
  signal.throwIfAborted();
  return { checks, duration_ms: elapsedMs(startedMs) };
}

/** The identity is read once, and the gateway asked once, for all checks that need them. */
async function prepare(config: AgentConfig, signal: AbortSignal): Promise<CheckContext> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(CHECK_TIMEOUT_MS)]);
  const identity = await new IdentityStore(diskFs, config.stateDir).current().catch((error: unknown) => {
    return { problem: describeError(error) };
  });
  let probe: ReturnType<typeof probeGateway> | undefined;
  return {
    config,
    identity,
    signal: bounded,
    gateway: () => {
      probe ??= probeGateway(config, identity, bounded);
      return probe;
    },
  };
}

async function runCheck(check: DoctorCheck, context: CheckContext): Promise<DoctorFinding> {
  const startedMs = systemTime.nowMs();
  const verdict = await Promise.race([
    CHECKS[check](context).catch((error: unknown) => fail(describeError(error))),
    timedOut(context.signal),
  ]);
  const detail = toBoundedText(verdict.detail, DETAIL_MAX_LENGTH) ?? 'no detail';
  return { check, status: verdict.status, detail, duration_ms: elapsedMs(startedMs) };
}

function timedOut(signal: AbortSignal): Promise<Verdict> {
  const verdict = fail(`no answer within ${CHECK_TIMEOUT_MS / 1_000} s`);
  if (signal.aborted) return Promise.resolve(verdict);
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(verdict), { once: true }));
}

function elapsedMs(startedMs: number): number {
  return Math.round(systemTime.nowMs() - startedMs);
}
