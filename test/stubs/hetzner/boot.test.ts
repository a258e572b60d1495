import { existsSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { identifyProcess, isRunning } from '../../../src/up/process-identity.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { waitFor } from '../../support/wait-for.ts';
import { ACTION_MS, SERVER, startStub } from './support.ts';

describe('boot hook', () => {
  test('called when the server runs, and again on reset; switched off on poweroff', async () => {
    const seen: string[] = [];
    const onBoot = ({ id, name }: { id: number; name: string }, userData: string) => {
      seen.push(`boot ${id} ${name} ${userData}`);
      return () => {
        seen.push(`off ${id}`);
      };
    };
    await using api = await startStub({ onBoot });
    const id = await api.create('servers', { ...SERVER, user_data: 'script' });
    api.advance(ACTION_MS);
    await api.stub.idle();
    expect(seen).toEqual([]);
    api.advance(ACTION_MS);
    await api.stub.idle();
    expect(seen).toEqual([`boot ${id} app-1 script`]);
    await api.call('POST', `/servers/${id}/actions/reset`);
    api.advance(ACTION_MS);
    await api.stub.idle();
    await api.call('POST', `/servers/${id}/actions/poweroff`);
    api.advance(ACTION_MS);
    await api.stub.idle();
    expect(seen.slice(1)).toEqual([`off ${id}`, `boot ${id} app-1 script`, `off ${id}`]);
  });

  test('nobody asks: the server boots by itself', async () => {
    const booted = Promise.withResolvers<string>();
    await using api = await startStub({
      nowMs: Date.now,
      actionMs: 20,
      onBoot: ({ name }) => {
        booted.resolve(name);
        return undefined;
      },
    });
    await api.create('servers', SERVER);
    expect(await booted.promise).toBe('app-1');
  });

  test('start_server fails: no boot', async () => {
    let boots = 0;
    const fault = { kind: 'action_error', command: 'start_server' } as const;
    await using api = await startStub({
      faults: [{ match: { path: '/v1/servers' }, fault }],
      onBoot: () => {
        boots += 1;
        return undefined;
      },
    });
    await api.create('servers', SERVER);
    api.advance(2 * ACTION_MS);
    await api.stub.idle();
    expect(boots).toBe(0);
  });
});

describe('boot command', () => {
  /** Reports its environment, then stays with a child of its own until it is ended. */
  const COMMAND = [
    'cp "$PUSHLEFT_STUB_USER_DATA_FILE" copy',
    'echo "$PUSHLEFT_STUB_SERVER_ID $PUSHLEFT_STUB_SERVER_NAME ${HETZNER_API_TOKEN-none}"',
    'sleep 600 & echo $! > child.tmp; mv child.tmp child',
    'wait',
  ].join('; ');

  async function boot(dir: string, command = COMMAND, stateFile?: string) {
    const api = await startStub({ bootCommand: { command, dir, graceMs: 300 }, ...(stateFile ? { stateFile } : {}) });
    const id = await api.create('servers', { ...SERVER, user_data: '#!/bin/sh\nsecret' });
    api.advance(2 * ACTION_MS);
    await api.stub.idle();
    const folder = join(dir, String(id));
    const child = Number(
      await waitFor(() => readFile(join(folder, 'child'), 'utf8'), { what: 'the machine has started its child' }),
    );
    return { api, id, folder, child };
  }

  test('running: its own directory with user-data 0600, id and name in the environment, no API token', async () => {
    await using root = await temporaryDirectory();
    process.env['HETZNER_API_TOKEN'] = 'canary';
    try {
      const { api, id, folder } = await boot(root.path);
      await using _ = api;
      expect(await readFile(join(folder, 'copy'), 'utf8')).toBe('#!/bin/sh\nsecret');
      expect((await stat(join(folder, 'user-data'))).mode & 0o777).toBe(0o600);
      expect(await readFile(join(folder, 'boot.log'), 'utf8')).toBe(`${id} app-1 none\n`);
    } finally {
      delete process.env['HETZNER_API_TOKEN'];
    }
  });

  test('its process is in the state, with its start time', async () => {
    await using root = await temporaryDirectory();
    const { api } = await boot(root.path);
    await using _ = api;
    const recorded = api.stub.state().servers[0]?.process;
    expect(recorded).toEqual(identifyProcess(recorded?.pid ?? 0));
  });

  test('deleted: the command and its child are gone, and the directory with them', async () => {
    await using root = await temporaryDirectory();
    const { api, id, folder, child } = await boot(root.path);
    await using _ = api;
    const leader = api.stub.state().servers[0]?.process;
    await api.call('DELETE', `/servers/${id}`);
    api.advance(ACTION_MS);
    await api.stub.idle();
    expect([identifyProcess(leader?.pid ?? 0), identifyProcess(child), existsSync(folder)]).toEqual([
      undefined,
      undefined,
      false,
    ]);
  });

  test('deaf to SIGTERM: killed', async () => {
    await using root = await temporaryDirectory();
    const { api, child } = await boot(root.path, `trap '' TERM; ${COMMAND}`);
    const leader = api.stub.state().servers[0]?.process;
    await api[Symbol.asyncDispose]();
    expect([identifyProcess(leader?.pid ?? 0), identifyProcess(child)]).toEqual([undefined, undefined]);
  });

  test('stub stopped and started again: the server boots again', async () => {
    await using root = await temporaryDirectory();
    const stateFile = join(root.path, 'state.json');
    const first = await boot(root.path, COMMAND, stateFile);
    await first.api[Symbol.asyncDispose]();
    expect(identifyProcess(first.child)).toBeUndefined();
    await using next = await startStub({ stateFile, bootCommand: { command: COMMAND, dir: root.path, graceMs: 300 } });
    await next.stub.idle();
    const process = next.stub.state().servers[0]?.process ?? undefined;
    expect(process !== undefined && isRunning(process)).toBe(true);
  });

  test('stub killed and started again: the process that outlived it is kept, and ends with its server', async () => {
    await using root = await temporaryDirectory();
    const stateFile = join(root.path, 'state.json');
    const { api, child } = await boot(root.path, COMMAND, stateFile);
    await using _ = api;
    await using next = await startStub({ stateFile, bootCommand: { command: COMMAND, dir: root.path, graceMs: 300 } });
    await next.stub.idle();
    expect(next.stub.state().servers[0]?.process).toEqual(api.stub.state().servers[0]?.process);
    await next.call('DELETE', '/servers/2');
    next.advance(ACTION_MS);
    await next.stub.idle();
    expect(identifyProcess(child)).toBeUndefined();
  });
});
