import { createInterface } from 'node:readline';
import { META_HELP, metaCommand } from './meta-commands.ts';
import { answerLines, type SqlSession, sqlErrorLine } from './session.ts';
import { splitSql } from './statements.ts';

const FRESH = 'fleet=> ';
const CONTINUED = 'fleet-> ';

/**
 * An SQL prompt on the terminal, with history. A statement ends with a semicolon and may take several lines. Ctrl-C drops the lines
 * typed so far, or cancels the statement that runs; Ctrl-D ends. An error of SQL is shown and the prompt goes on.
 */
export async function sqlPrompt(session: SqlSession, print: (line: string) => void): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout, prompt: FRESH, historySize: 500 });
  let pending = '';
  let running = false;
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
      if (meta === 'help') META_HELP.forEach(print);
      else await run(meta.sql);
    } else {
      const { statements, rest } = splitSql(`${pending}${line}\n`);
      pending = rest.trim() === '' ? '' : rest;
      for (const statement of statements) await run(statement);
    }
    terminal.setPrompt(pending === '' ? FRESH : CONTINUED);
    terminal.prompt();
  }
  terminal.close();
}
