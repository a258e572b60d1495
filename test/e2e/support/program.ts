import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { PkiPaths } from '../../../src/pki/files.ts';
import { startCli } from '../../cli/support/run-cli.ts';
import { gatewayEnvironment } from '../../gateway/support/fleet.ts';
import { waitFor } from '../../support/wait-for.ts';

/** A long-running program of the control plane and what it has logged. `await using` ends it in order. */
export interface Program extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly output: () => string;
  /** The line of its log with this message. */
  logged(message: string): Promise<Readonly<Record<string, unknown>>>;
}

/** Starts `pushleft-controller NAME`. */
export function startProgram(name: 'gateway' | 'scheduler', env: Readonly<Record<string, string>>): Program {
  const child = startCli([name], { env });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  }
  const exited = once(child, 'close');
  const lineOf = (message: string) =>
    output.split('\n').find((line) => line.startsWith('{') && line.includes(`"msg":${JSON.stringify(message)}`));
  return {
    child,
    output: () => output,
    async logged(message) {
      await waitFor(() => lineOf(message) !== undefined || child.exitCode !== null, {
        what: `${name} says "${message}"`,
        deadlineMs: 60_000,
      });
      const line = lineOf(message);
      if (line === undefined) throw new Error(`${name} said only:\n${output}`);
      return JSON.parse(line);
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      await exited;
    },
  };
}

/** A gateway process and where it listens. */
export interface GatewayProgram extends Program {
  readonly agentPort: number;
  readonly enrollPort: number;
  readonly adminUrl: string;
}

/** Starts a gateway, on free ports unless `env` says otherwise, and waits until it listens. */
export async function startGatewayProgram(
  databaseUrl: string,
  pki: PkiPaths,
  env: Record<string, string> = {},
): Promise<GatewayProgram> {
  const program = startProgram('gateway', gatewayEnvironment(databaseUrl, pki, env));
  const { agent, enroll, admin } = await program.logged('the gateway listens');
  const portOf = (url: unknown) => Number(new URL(String(url)).port);
  return { ...program, agentPort: portOf(agent), enrollPort: portOf(enroll), adminUrl: String(admin) };
}
