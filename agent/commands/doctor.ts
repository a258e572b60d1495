import type { DoctorReport } from '../../src/protocol/job-kinds/diagnose-host.ts';
import type { AgentConfig } from '../config.ts';
import { diagnose } from '../doctor.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';
import { stopOnSignals } from './stopping.ts';

/** `pushleft-agent doctor`: exits 1 when a check fails; a warning is not a failure. */
export async function doctorCommand(config: AgentConfig, { json }: { readonly json: boolean }): Promise<ExitCode> {
  const report = await diagnose(config, undefined, stopOnSignals());
  process.stdout.write(json ? `${JSON.stringify(report)}\n` : table(report));
  return report.checks.some(({ status }) => status === 'fail') ? EXIT.refused : EXIT.done;
}

function table({ checks, duration_ms }: DoctorReport): string {
  const width = Math.max(...checks.map(({ check }) => check.length));
  const lines = checks.map(({ check, status, detail }) => `${status.padEnd(4)}  ${check.padEnd(width)}  ${detail}`);
  return `${lines.join('\n')}\n${checks.length} checks in ${duration_ms} ms\n`;
}
