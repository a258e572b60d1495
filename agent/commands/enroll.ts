import { readFileSync } from 'node:fs';
import { readBundle } from '../certificate-check.ts';
import type { AgentConfig } from '../config.ts';
import { enroll } from '../enroll.ts';
import { EXIT, type ExitCode, UsageError } from '../exit-code.ts';
import { HttpsJson } from '../https-json.ts';
import { IdentityStore } from '../identity-store.ts';
import { describeError, type Log } from '../log.ts';
import { diskFs } from '../state-fs.ts';
import { systemTime } from '../time.ts';
import { stopOnSignals } from './stopping.ts';

/** `pushleft-agent enroll`. */
export async function enrollCommand(
  config: AgentConfig,
  log: Log,
  options: { readonly waitMs: number; readonly replace: boolean },
): Promise<ExitCode> {
  const ca = readBootstrapCa(config.bootstrapCaFile);
  const listener = new HttpsJson(config.enrollUrl, { ca }, systemTime);
  try {
    const outcome = await enroll({
      nodeId: config.nodeId,
      store: new IdentityStore(diskFs, config.stateDir),
      listener,
      time: systemTime,
      log,
      stopping: stopOnSignals(),
      ...options,
    });
    switch (outcome.kind) {
      case 'enrolled':
      case 'already_enrolled':
        log.info({ node: config.nodeId, not_after: outcome.notAfter.toISOString() }, outcome.kind);
        return EXIT.done;
      case 'refused':
        log.error({ node: config.nodeId, reason: outcome.reason }, 'enrolment refused');
        return EXIT.refused;
      case 'unreachable':
        log.error({ node: config.nodeId, reason: outcome.reason }, 'enrolment not answered');
        return EXIT.failed;
    }
  } finally {
    await listener.close();
  }
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
