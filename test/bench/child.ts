import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** A program of this folder as a process of its own, so that its processor time and memory are its alone. It talks in messages. */
export interface BenchChild extends AsyncDisposable {
  /** Sends a message and waits for the next one. Throws when the process ends instead. */
  ask(question: unknown): Promise<unknown>;
}

/** Starts `file` of this folder and waits for its first message, which is `ready`. */
export async function startChild(
  file: string,
  env: Readonly<Record<string, string>>,
): Promise<BenchChild & { ready: unknown }> {
  const child = fork(join(import.meta.dirname, file), {
    env: { ...process.env, ...env },
    stdio: ['ignore', 2, 2, 'ipc'],
  });
  const ask = (question: unknown): Promise<unknown> => {
    const answered = nextMessage(child, file);
    child.send(question as object);
    return answered;
  };
  return {
    ready: await nextMessage(child, file),
    ask,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function nextMessage(child: ChildProcess, file: string): Promise<unknown> {
  const ended = new AbortController();
  const message = once(child, 'message', { signal: ended.signal });
  const onExit = (code: number | null) => ended.abort(new Error(`${file} ended with ${code}`));
  child.once('exit', onExit);
  const [answer] = await message.catch(() => {
    throw ended.signal.reason;
  });
  child.off('exit', onExit);
  return answer;
}

/** In a child: answers each question. */
export function answerQuestions(answer: (question: unknown) => Promise<unknown>): void {
  process.on('message', (question) => {
    void answer(question).then((answered) => process.send?.(answered));
  });
}
