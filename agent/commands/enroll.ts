import { readFileSync } from 'node:fs';
import type { ReenrollBundle } from '../../src/protocol/reenroll-bundle.ts';
import { enrollByBundle, readBundleFile } from '../bundle-file.ts';
import { readBundle } from '../certificate-check.ts';
import type { AgentConfig } from '../config.ts';
import { type EnrollOutcome, enroll } from '../enroll.ts';
import { EXIT, type ExitCode, UsageError } from '../exit-code.ts';
import { HttpsJson } from '../https-json.ts';
import { IdentityStore } from '../identity-store.ts';
import { describeError, type Log } from '../log.ts';
import { diskFs } from '../state-fs.ts';
import { systemTime } from '../time.ts';
import { stopOnSignals } from './stopping.ts';

/** Options of `enroll`: how long to ask, whether in place of an identity in force, and the file that `fleet reenroll` wrote. */
interface EnrollOptions {
  readonly waitMs: number;
  readonly replace: boolean;
  readonly bundleFile: string | undefined;
}

/** `pushleft-agent enroll`. */
export async function enrollCommand(config: AgentConfig, log: Log, options: EnrollOptions): Promise<ExitCode> {
  if (options.bundleFile === undefined) {
    const ca = readBootstrapCa(config.bootstrapCaFile);
    return report(await enrollWith(config, log, options, { ca, url: config.enrollUrl }), config, log);
  }
  const reading = await readBundleFile(options.bundleFile, config.nodeId);
  switch (reading.kind) {
    case 'unreadable':
      throw new UsageError(`--bundle cannot be used: ${reading.reason}`);
    case 'refused':
      return report(reading, config, log);
    case 'bundle': {
      const { bundle } = reading;
      warnOfOtherGateway(config, bundle, log);
      const listener = { ca: bundle.ca_pem, url: new URL(bundle.enroll_url) };
      return report(await enrollWith(config, log, options, listener, bundle), config, log);
    }
  }
}

async function enrollWith(
  config: AgentConfig,
  log: Log,
  { waitMs, replace, bundleFile = '' }: EnrollOptions,
  { ca, url }: { readonly ca: string; readonly url: URL },
  bundle?: ReenrollBundle,
): Promise<EnrollOutcome> {
  const listener = new HttpsJson(url, { ca }, systemTime);
  const store = new IdentityStore(diskFs, config.stateDir);
  const common = { nodeId: config.nodeId, store, listener, time: systemTime, log, stopping: stopOnSignals(), waitMs };
  try {
    if (bundle === undefined) return await enroll({ ...common, replace });
    return await enrollByBundle(bundleFile, bundle, diskFs, common);
  } finally {
    await listener.close();
  }
}

function report(outcome: EnrollOutcome, { nodeId }: AgentConfig, log: Log): ExitCode {
  switch (outcome.kind) {
    case 'enrolled':
    case 'already_enrolled':
      log.info({ node: nodeId, not_after: outcome.notAfter.toISOString() }, outcome.kind);
      return EXIT.done;
    case 'refused':
      log.error({ node: nodeId, reason: outcome.reason }, 'enrolment refused');
      return EXIT.refused;
    case 'unreachable':
      log.error({ node: nodeId, reason: outcome.reason }, 'enrolment not answered');
      return EXIT.failed;
  }
}

/** The bundle names the gateway of now; what the agent is configured with may be older. */
function warnOfOtherGateway(config: AgentConfig, bundle: ReenrollBundle, log: Log): void {
  const named = new URL(bundle.gateway_url).origin;
  if (named === config.gatewayUrl.origin) return;
  const fields = { configured: config.gatewayUrl.origin, bundle: named };
  log.warn(fields, 'PUSHLEFT_GATEWAY_URL is another one than the bundle names; the agent goes on using its own');
}

function readBootstrapCa(path: string): string {
  try {
    const pem = readFileSync(path, 'utf8');
    if (readBundle(pem).length > 0) return pem;
  } catch (error) {
    throw new UsageError(`PUSHLEFT_AGENT_CA cannot be read: ${describeError(error)}`, { cause: error });
  }
  throw new UsageError('PUSHLEFT_AGENT_CA holds no certificate');
}
