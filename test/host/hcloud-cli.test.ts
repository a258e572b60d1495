import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { createHetznerStub } from '../../stubs/hetzner/stub.ts';

const run = promisify(execFile);

const TOKEN = 'operator-token';

/** A project of its own, and Debian's hcloud pointed at it. */
async function startProject(token = TOKEN) {
  const { url, close } = await createHetznerStub({ token, actionMs: 50 }).listen();
  const env = { PATH: process.env['PATH'], HCLOUD_ENDPOINT: url, HCLOUD_TOKEN: TOKEN, HOME: '/nonexistent' };
  const hcloud = async (...args: string[]) => (await run('hcloud', args, { env })).stdout;
  return {
    hcloud,
    json: async (...args: string[]): Promise<unknown> => JSON.parse(await hcloud(...args, '-o', 'json')),
    /** Creates a server without hcloud, which would wait until it has started. */
    async create(name: string) {
      const body = JSON.stringify({ name, server_type: 'cx23', image: 'ubuntu-24.04' });
      const { status } = await fetch(`${url}/servers`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
        body,
      });
      expect(status).toBe(201);
    },
    [Symbol.asyncDispose]: close,
  };
}

const CREATE_APP_1 = [
  ...'server create --name app-1 --type cx23 --image ubuntu-24.04 --location fsn1'.split(' '),
  ...'--ssh-key operator --label pushleft.pool=application'.split(' '),
];

beforeAll(async () => {
  await run('hcloud', ['version']).catch((cause: unknown) => {
    throw new Error('hcloud is missing: apt-get install hcloud-cli', { cause });
  });
});

describe('hcloud server', () => {
  test('create: waits until the server has started and prints its addresses', async () => {
    await using project = await startProject();
    expect(await project.hcloud(...CREATE_APP_1)).toMatch(
      /Server 2 created\nIPv4: 192\.0\.2\.1\nIPv6: 2001:db8:0:1::1/,
    );
  });

  test('list: shows it running, also by label', async () => {
    await using project = await startProject();
    await project.hcloud(...CREATE_APP_1);
    const columns = ['-o', 'noheader', '-o', 'columns=id,name,status,ipv4'];
    const row = /^2 +app-1 +running +192\.0\.2\.1\s*$/;
    expect(await project.hcloud('server', 'list', ...columns)).toMatch(row);
    expect(await project.hcloud('server', 'list', '-l', 'pushleft.pool in (application)', ...columns)).toMatch(row);
    expect(await project.hcloud('server', 'list', '-l', '!pushleft.pool', ...columns)).toBe('');
  });

  test('describe: type, image and labels', async () => {
    await using project = await startProject();
    await project.hcloud(...CREATE_APP_1);
    expect(await project.json('server', 'describe', 'app-1')).toMatchObject({
      id: 2,
      status: 'running',
      server_type: { name: 'cx23' },
      image: { name: 'ubuntu-24.04' },
      labels: { 'pushleft.pool': 'application' },
    });
  });

  test('delete: the server goes', async () => {
    await using project = await startProject();
    await project.hcloud(...CREATE_APP_1);
    expect(await project.hcloud('server', 'delete', 'app-1')).toBe('Server app-1 deleted\n');
    await expect.poll(() => project.hcloud('server', 'list', '-o', 'noheader')).toBe('');
  });

  test('sixty servers: listed over two pages', async () => {
    await using project = await startProject();
    for (let i = 1; i <= 60; i += 1) await project.create(`s${i}`);
    expect(await project.json('server', 'list')).toHaveLength(60);
  });

  test('create under a taken name: fails with uniqueness_error', async () => {
    await using project = await startProject();
    await project.hcloud(...CREATE_APP_1);
    await expect(project.hcloud(...CREATE_APP_1)).rejects.toThrow('uniqueness_error');
  });
});

describe('hcloud firewall', () => {
  test('list and describe: the rules in canonical form and the server behind them', async () => {
    await using project = await startProject();
    await project.hcloud(...CREATE_APP_1);
    await project.hcloud('firewall', 'create', '--name', 'pushleft-application');
    const ssh = ['--direction', 'in', '--protocol', 'tcp', '--port', '22', '--source-ips', '2001:DB8:0::/48'];
    await project.hcloud('firewall', 'add-rule', 'pushleft-application', ...ssh);
    const server = ['--type', 'server', '--server', 'app-1'];
    await project.hcloud('firewall', 'apply-to-resource', 'pushleft-application', ...server);
    expect(await project.hcloud('firewall', 'list', '-o', 'noheader')).toMatch(
      /pushleft-application +1 Rule +1 Server/,
    );
    expect(await project.json('firewall', 'describe', 'pushleft-application')).toMatchObject({
      rules: [{ direction: 'in', protocol: 'tcp', port: '22', source_ips: ['2001:db8::/48'] }],
      applied_to: [{ type: 'server', server: { id: 2 } }],
    });
  });
});

test('hcloud server-type list: cx23 is there, cx22 is not', async () => {
  await using project = await startProject();
  const names = (await project.hcloud('server-type', 'list', '-o', 'noheader', '-o', 'columns=name')).split('\n');
  expect(names).toContain('cx23');
  expect(names).not.toContain('cx22');
});

test('wrong token: hcloud says unauthorized', async () => {
  await using project = await startProject('another-token');
  await expect(project.hcloud('server', 'list')).rejects.toThrow('unauthorized');
});
