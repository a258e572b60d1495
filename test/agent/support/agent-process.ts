import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { waitFor } from '../../support/wait-for.ts';

const LAUNCHER = fileURLToPath(new URL('../../../agent/bin/pushleft-agent.js', import.meta.url));

/** A line of the agent's log. */
export type LogLine = Readonly<Record<string, unknown>>;

/** A real `pushleft-agent` and what it has said. `await using` kills it. */
export interface AgentProcess extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Resolves when a line with this message was logged. */
  logged(message: string, count?: number): Promise<LogLine>;
  /** Exit code, or the signal's name. */
  readonly exited: Promise<number | string>;
}

/** Starts the agent from its sources with this Node, and nothing of the test's own environment. */
export function startAgent(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  nodeOptions: readonly string[] = [],
): AgentProcess {
  const child = spawn(process.execPath, [...nodeOptions, LAUNCHER, ...args], {
    env: { ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const exited = once(child, 'close').then(([code, signal]) => (code as number | null) ?? String(signal));
  const matching = (message: string) => parseLines(stderr).filter(({ msg }) => msg === message);
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    exited,
    logged: async (message, count = 1) => {
      try {
        await waitFor(() => matching(message).length >= count, { what: `"${message}"`, deadlineMs: 30_000 });
      } catch (error) {
        throw new Error(`the agent said only:\n${stderr}`, { cause: error });
      }
      return matching(message)[count - 1] ?? {};
    },
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      await exited;
    },
  };
}

function parseLines(text: string): LogLine[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as LogLine);
}
