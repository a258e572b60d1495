import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { temporaryDirectory } from '../support/temporary-directory.ts';

const LAUNCHER = fileURLToPath(new URL('../../agent/bin/pushleft-agent.js', import.meta.url));

function agent(args: readonly string[], env: Readonly<Record<string, string>> = {}, node = process.execPath) {
  return new Promise<{ code: number | string | null | undefined; stdout: string; stderr: string }>((resolve) => {
    execFile(node, [LAUNCHER, ...args], { env: { ...env } }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
    );
  });
}

describe('pushleft-agent', () => {
  test('--version: the version, exit 0', async () =>
    expect(await agent(['--version'])).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: '' }));

  test('--help: names every command, exit 0', async () => {
    const { code, stdout } = await agent(['--help']);
    expect(code).toBe(0);
    expect(stdout.match(/^ {2}(enroll|run|doctor) /gm)).toHaveLength(3);
  });

  test.each([
    [[], 'no command given; see --help'],
    [['dance'], 'unknown command; see --help'],
    [['run', 'now'], 'run takes no arguments; see --help'],
    [['enroll', '--wait', 'long', '--environment-file', '/dev/null'], 'PUSHLEFT_NODE_ID is not set'],
  ])('%j: one line, exit 2', async (args, line) =>
    expect(await agent(args)).toEqual({ code: 2, stdout: '', stderr: `pushleft-agent: ${line}\n` }),
  );

  test('an unknown option: one line that names it, exit 2', async () => {
    const { code, stderr } = await agent(['run', '--fast']);
    expect(code).toBe(2);
    expect(stderr).toContain("'--fast'");
  });

  test('an env file that is not there: named, exit 2', async () => {
    const { code, stderr } = await agent(['run', '--environment-file', '/nowhere/agent.env']);
    expect(code).toBe(2);
    expect(stderr).toContain('--environment-file cannot be read: ');
  });

  test('the environment overrides the env file', async () => {
    await using folder = await temporaryDirectory();
    await writeFile(`${folder.path}/agent.env`, 'PUSHLEFT_NODE_ID=app-1\nPUSHLEFT_AGENT_CA=/from/file\n');
    const { stderr } = await agent(['run', '--environment-file', `${folder.path}/agent.env`], {
      PUSHLEFT_AGENT_CA: 'relative',
    });
    expect(stderr).toBe('pushleft-agent: PUSHLEFT_AGENT_CA must be an absolute path\n');
  });

  test.skipIf(!existsSync('/usr/bin/node'))(
    'started by the system Node, whichever it is: hands over, code and all',
    async () => {
      expect(await agent(['--version'], {}, '/usr/bin/node')).toEqual({
        code: 0,
        stdout: `${manifest.version}\n`,
        stderr: '',
      });
      expect((await agent(['run'], {}, '/usr/bin/node')).code).toBe(2);
    },
  );
});
