import { mkdir, readFile } from 'node:fs/promises';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { hostFactsReader, readBootId } from '../../agent/host-facts.ts';
import { HostFacts } from '../../src/protocol/lease.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { startDockerDaemon } from './support/docker-daemon.ts';

test('readBootId: what Linux says, the same each time', async () => {
  expect(await readBootId()).toBe((await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim());
  expect(await readBootId()).toBe(await readBootId());
});

describe('hostFactsReader', () => {
  test('no Docker and no data volume: null for both, and the facts are what the protocol takes', async () => {
    await using folder = await temporaryDirectory();
    const facts = await hostFactsReader({
      stateDir: folder.path,
      dockerSocket: `${folder.path}/docker.sock`,
      runtime: 'process',
      ingress: 'embedded',
    })();
    expect(v.parse(HostFacts, facts)).toEqual(facts);
    expect(facts).toMatchObject({
      docker_version: null,
      data_disk_free_gb: null,
      runtime: 'process',
      ingress: 'embedded',
    });
  });

  test('a data directory: its free space, a whole number', async () => {
    await using folder = await temporaryDirectory();
    await mkdir(`${folder.path}/data`);
    const facts = await hostFactsReader({
      stateDir: folder.path,
      dockerSocket: '/nowhere',
      runtime: 'process',
      ingress: null,
    })();
    expect(facts.data_disk_free_gb).toSatisfy((gb) => Number.isSafeInteger(gb) && gb >= 0);
  });

  test("Docker's version: asked for once in a process", async () => {
    await using folder = await temporaryDirectory();
    const dockerSocket = `${folder.path}/docker.sock`;
    await using daemon = await startDockerDaemon(dockerSocket, '{"Version":"29.0.1","Os":"linux"}');
    const read = hostFactsReader({ stateDir: folder.path, dockerSocket, runtime: 'docker', ingress: null });
    expect([(await read()).docker_version, (await read()).docker_version]).toEqual(['29.0.1', '29.0.1']);
    expect(daemon.asked()).toBe(1);
  });

  test.each(['hold', 'not JSON', '{"Version":7}', '{}'])(
    'a daemon that answers %j: null, in bounded time',
    async (answer) => {
      await using folder = await temporaryDirectory();
      const dockerSocket = `${folder.path}/docker.sock`;
      await using _daemon = await startDockerDaemon(dockerSocket, answer);
      const startedMs = performance.now();
      const facts = await hostFactsReader({ stateDir: folder.path, dockerSocket, runtime: 'docker', ingress: null })();
      expect(facts.docker_version).toBe(null);
      expect(performance.now() - startedMs).toBeLessThan(10_000);
    },
  );
});
