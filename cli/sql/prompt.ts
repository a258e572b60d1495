import { createInterface } from 'node:readline';
import { META_HELP, metaCommand } from './meta-commands.ts';
import { answerLines, type SqlSession, sqlErrorLine } from './session.ts';
import { splitSql } from './statements.ts';

const FRESH = 'fleet=> ';
const CONTINUED = 'fleet-> ';

/** Where the prompt reads and writes; `terminal: false` leaves line editing out. */
export interface PromptStreams {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly terminal?: boolean;
}

/**
 * An SQL prompt on the terminal, with history. A statement ends with a semicolon and may take several lines. Ctrl-C drops the lines
 * typed so far, or cancels the statement that runs; Ctrl-D ends. An error of SQL is shown and the prompt goes on.
 */
export async function sqlPrompt(
  session: SqlSession,
  { input, output, terminal: isTerminal = true }: PromptStreams,
): Promise<void> {
  const terminal = createInterface({ input, output, terminal: isTerminal, prompt: FRESH, historySize: 500 });
  const print = (line: string) => output.write(`${line}\n`);
  let pending = '';
  let running = false;
  let closed = false;
  terminal.once('close', () => {
    closed = true;
  });
  terminal.on('SIGINT', () => {
    if (running) {
      session.cancel().catch(() => undefined);
      return;
    }
    pending = '';
    print('');
    terminal.setPrompt(FRESH);
    terminal.prompt();
  });
  const run = async (sql: string) => {
    running = true;
    try {
      for (const line of answerLines(await session.run(sql))) print(line);
    } catch (error) {
      const shown = sqlErrorLine(error);
      if (shown === undefined) throw error;
      print(shown);
    } finally {
      running = false;
    }
  };
  terminal.prompt();
  for await (const line of terminal) {
    if (pending === '' && line.trim().startsWith('\\')) {
      const meta = metaCommand(line);
      if (meta === 'quit') break;
      if (meta === 'help') for (const help of META_HELP) print(help);
      else await run(meta.sql);
    } else {
      const { statements, rest } = splitSql(`${pending}${line}\n`);
      pending = rest.trim() === '' ? '' : rest;
      for (const statement of statements) await run(statement);
    }
    // Ctrl-D may have come while the statement ran.
    if (closed) break;
    terminal.setPrompt(pending === '' ? FRESH : CONTINUED);
    terminal.prompt();
  }
  terminal.close();
}
