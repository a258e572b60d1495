import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** A TypeScript file running as a process of its own, and the whole lines that it has printed so far. */
export interface Worker {
  readonly child: ChildProcess;
  readonly lines: readonly string[];
  /** Sends a signal; resolves when the process has ended (not for SIGSTOP and SIGCONT). */
  kill(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts `path` (below test/) with extra environment. What it prints on stderr goes to the test's own. */
export function startWorker(path: string, env: Readonly<Record<string, string>>): Worker {
  const child = spawn(process.execPath, [join(import.meta.dirname, '..', path)], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const parts = (rest + chunk).split('\n');
    rest = parts.pop() ?? '';
    lines.push(...parts);
  });
  return {
    child,
    lines,
    async kill(signal = 'SIGKILL') {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ends = signal !== 'SIGSTOP' && signal !== 'SIGCONT';
      const exited = ends ? once(child, 'close') : undefined;
      child.kill(signal);
      await exited;
    },
  };
}
