import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { startAgent } from './support/agent-process.ts';
import { enrolledHost } from './support/host.ts';

const LAUNCHER = fileURLToPath(new URL('../../agent/bin/pushleft-agent.js', import.meta.url));

function agent(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  nodeOptions: readonly string[] = [],
) {
  return new Promise<{ code: number | string | null | undefined; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, [...nodeOptions, LAUNCHER, ...args], { env: { ...env } }, (error, stdout, stderr) =>
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
    expect(stdout.match(/^ {2}(enroll|run|renew-certificate|doctor) /gm)).toHaveLength(4);
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
    await writeFile(
      `${folder.path}/agent.env`,
      'PUSHLEFT_NODE_ID=10000000-0000-4000-8000-00000000000a\nPUSHLEFT_AGENT_CA=/from/file\n',
    );
    const { stderr } = await agent(['run', '--environment-file', `${folder.path}/agent.env`], {
      PUSHLEFT_AGENT_CA: 'relative',
    });
    expect(stderr).toBe('pushleft-agent: PUSHLEFT_AGENT_CA must be an absolute path\n');
  });
});

describe('started by an older Node', () => {
  /** Makes this Node say that it is an older one; what it hands over to is not told so. */
  const OLDER = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } });`;
  const older = ['--import', `data:text/javascript,${encodeURIComponent(OLDER)}`];

  test('hands over: the answer and the exit code are the same', async () => {
    expect(await agent(['--version'], {}, older)).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: '' });
    expect((await agent(['run'], {}, older)).code).toBe(2);
  });

  test('SIGTERM is handed on: the agent stops in order, exit 0', async () => {
    await using host = await enrolledHost();
    host.gateway.lease = () => 'hold';
    await using running = startAgent(['run'], host.env, older);
    await running.logged('agent started');
    running.child.kill('SIGTERM');
    expect(await running.exited).toBe(0);
    expect(running.stderr()).toContain('"agent stopped"');
  });
});
