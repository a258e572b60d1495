import { Flags } from '@oclif/core';
import { EXIT } from '../../exit-code.ts';
import { Failure } from '../../failure.ts';
import { OperatorCommand } from '../../operator-command.ts';
import { readBounded } from '../../read-bounded.ts';
import { sqlPrompt } from '../../sql/prompt.ts';
import { type Answer, answerLines, openSqlSession, type SqlSession, sqlErrorLine } from '../../sql/session.ts';
import { splitSql } from '../../sql/statements.ts';

const SCRIPT_MAX_BYTES = 16 * 1024 * 1024;

/** `db shell`: SQL, for where there is no psql. */
export default class DbShell extends OperatorCommand {
  static override summary = 'Ask the database in SQL: a prompt, or statements from -c or standard input.';
  static override description = 'Refuses to write unless --write is given. The event log refuses changes in any case.';
  static override examples = [
    '<%= config.bin %> db shell',
    `<%= config.bin %> db shell -c "SELECT type, count(*) FROM log.events GROUP BY 1 ORDER BY 2 DESC"`,
    '<%= config.bin %> db shell --json < report.sql',
  ];
  static override flags = {
    command: Flags.string({ char: 'c', summary: 'Run these statements and end.', helpValue: 'SQL' }),
    write: Flags.boolean({ summary: 'Allow statements that change something.' }),
  };

  async run() {
    const { flags } = await this.parse(DbShell);
    const { databaseUrl } = await this.environment(flags);
    const session = await openSqlSession(databaseUrl, this.programName(), flags.write);
    this.onEnd(() => session.close());
    if (flags.command === undefined && process.stdin.isTTY && !this.jsonEnabled()) {
      this.log(
        '%s',
        `${flags.write ? 'Writing is allowed.' : 'Read-only; --write allows changes.'} \\? helps, \\q ends.`,
      );
      return sqlPrompt(session, { input: process.stdin, output: process.stdout });
    }
    const script = flags.command ?? (await readBounded('-', SCRIPT_MAX_BYTES, 'standard input'));
    const { statements, rest } = splitSql(script);
    const answers: Answer[] = [];
    for (const statement of rest.trim() === '' ? statements : [...statements, rest]) {
      const answer = await this.answer(session, statement);
      this.logLines(answerLines(answer));
      answers.push(answer);
    }
    return {
      statements: answers.map(({ command, rowCount, columns, rows }) => ({
        command,
        row_count: rowCount,
        rows: rows.map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i] ?? null]))),
      })),
    };
  }

  private async answer(session: SqlSession, statement: string): Promise<Answer> {
    try {
      return await session.run(statement);
    } catch (error) {
      const line = sqlErrorLine(error);
      if (line === undefined) throw error;
      throw new Failure(EXIT.refused, 'sql', line, { cause: error });
    }
  }
}
