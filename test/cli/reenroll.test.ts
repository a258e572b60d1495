import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { access, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as v from 'valibot';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { initializeCaCommand } from '../../src/commands/ca.ts';
import type { FleetEvent } from '../../src/domain/event/catalogue.ts';
import { nodeStream } from '../../src/domain/stream.ts';
import { ReenrollBundle } from '../../src/protocol/reenroll-bundle.ts';
import { AgentClient } from '../gateway/support/client.ts';
import { startFleet, type TestAgent, type TestFleet } from '../gateway/support/fleet.ts';
import { appendCommand, dueAgent, renewedAgent, told } from '../gateway/support/renewal.ts';
import { CanaryScanner } from '../support/canary.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { NOTHING_RECLAIMED } from '../support/workload-events.ts';
import { plainLines, runCli } from './support/run-cli.ts';

const AGENT = join(import.meta.dirname, '../../agent/bin/pushleft-agent.js');

// Each test starts processes, which wait for their turn on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

const cleanup = new AsyncDisposableStack();
let fleet: TestFleet;
/** Where the operator stands, and where bundles are written. */
let folder: string;
let env: Record<string, string>;
/** All that any command of this file has printed, and every secret that was armed. */
const printed: string[] = [];
const secrets: string[] = [];

beforeAll(async () => {
  ({ path: folder } = cleanup.use(await temporaryDirectory()));
  fleet = cleanup.use(await startFleet());
  env = {
    DATABASE_URL: fleet.database.url,
    PUSHLEFT_GATEWAY_URL: fleet.gateway.agentUrl,
    PUSHLEFT_ENROLL_URL: fleet.gateway.enrollUrl,
  };
});
afterAll(() => cleanup.disposeAsync());

async function reenroll(...args: string[]) {
  const run = await runCli(['fleet', 'reenroll', ...args], { env, cwd: folder });
  printed.push(run.stdout, run.stderr);
  return run;
}

const nameOf = ({ nodeId }: { nodeId: string }) => `node-${nodeId.slice(0, 8)}`;
const fileOf = (node: { nodeId: string }) => join(folder, `${nameOf(node)}.reenroll.json`);

async function bundleOf(node: { nodeId: string }): Promise<ReenrollBundle> {
  const bundle = v.parse(v.strictObject(ReenrollBundle.entries), JSON.parse(await readFile(fileOf(node), 'utf8')));
  secrets.push(bundle.enrollment_secret);
  return bundle;
}

function become(agent: TestAgent, event: FleetEvent) {
  return fleet.operate(appendCommand, { stream: nodeStream(agent.nodeId), events: [event] });
}
const lost = ({ nodeId }: TestAgent): FleetEvent => ({
  type: 'node_lost',
  data: { node_id: nodeId, silent_ms: 300_000, ...NOTHING_RECLAIMED },
});
const retired = ({ nodeId }: TestAgent): FleetEvent => ({ type: 'node_retired', data: { node_id: nodeId } });

async function leaseAs(agent: TestAgent) {
  using client = new AgentClient(fleet.gateway.agentUrl, agent);
  return await client.lease();
}

/** As if the host had been off for longer than its certificates live. */
async function expire({ nodeId }: TestAgent): Promise<void> {
  await fleet.database.pool.query(
    `UPDATE fleet.fleet_node_certificates SET not_after = now() - interval '1 hour' WHERE node_id = $1`,
    [nodeId],
  );
}

/** Cause and end of a node's certificates, the oldest first. */
async function certificatesOf({ nodeId }: TestAgent) {
  const { rows } = await fleet.database.pool.query<{ cause: string; revoked: string | null }>(
    `SELECT cause, revoked_reason AS revoked FROM fleet.fleet_node_certificates
     WHERE node_id = $1 ORDER BY authorized_position`,
    [nodeId],
  );
  return rows.map(({ cause, revoked }) => [cause, revoked]);
}

/** What the log says of secrets for a node, the oldest first; the first is that of its user-data. */
async function armedFor({ nodeId }: { nodeId: string }) {
  const { rows } = await fleet.database.pool.query<{ body: string }>(
    `SELECT e.body FROM log.events e JOIN fleet.fleet_events f USING (position)
     WHERE f.node_id = $1 AND f.type = 'node_enrollment_secret_armed' ORDER BY position`,
    [nodeId],
  );
  return rows.map(({ body }) => JSON.parse(body).data);
}

/** Runs the agent's program on the node's host with the bundle; answers its new identity. */
async function enrollOnHost(agent: TestAgent): Promise<TestAgent> {
  const stateDir = join(folder, `host-${agent.nodeId}`);
  await mkdir(stateDir, { mode: 0o700 });
  await promisify(execFile)(process.execPath, [AGENT, 'enroll', '--bundle', fileOf(agent), '--wait', '0'], {
    env: {
      PUSHLEFT_NODE_ID: agent.nodeId,
      // A file of long ago: the bundle says whom to believe.
      PUSHLEFT_AGENT_CA: join(stateDir, 'not-there.pem'),
      PUSHLEFT_GATEWAY_URL: fleet.gateway.agentUrl,
      PUSHLEFT_ENROLL_URL: fleet.gateway.enrollUrl,
      PUSHLEFT_AGENT_STATE_DIR: stateDir,
    },
  });
  const read = (file: string) => readFile(join(stateDir, 'pki/current', file), 'utf8');
  const [cert, key, ca] = await Promise.all([read('certificate.pem'), read('key.pem'), read('gateway-ca.pem')]);
  return { ...agent, cert, key, ca };
}

describe('before anything is armed', () => {
  test('neither a file nor a CA in the log: exit 1, and both remedies; no address of the gateway: exit 2', async () => {
    const agent = await fleet.agent();
    const [unknown, unset] = await Promise.all([
      reenroll(nameOf(agent)),
      runCli(['fleet', 'reenroll', nameOf(agent)], { env: { ...env, PUSHLEFT_ENROLL_URL: '' }, cwd: folder }),
    ]);
    expect([unknown.code, unknown.stderr]).toEqual([
      1,
      expect.stringMatching(/fleet ca init.*or set PUSHLEFT_FLEET_GATEWAY_CA_FILE/),
    ]);
    expect([unset.code, unset.stderr.split('\n')[0]]).toEqual([
      2,
      'pushleft-controller: PUSHLEFT_ENROLL_URL is not set',
    ]);
    expect(await armedFor(agent)).toHaveLength(1);
  });
});

describe('with the CA in the log', () => {
  beforeAll(async () => {
    const { caSha256, caNotAfterMs } = fleet.pki.signer;
    const ca_pem = await readFile(fleet.pkiPaths.caCert, 'utf8');
    await fleet.operate(initializeCaCommand, { ca_sha256: caSha256, ca_pem, not_after: caNotAfterMs });
  });

  test('a host that was off for longer than its certificate lives: back with the bundle, and the file is gone', async () => {
    const agent = await fleet.agent();
    await leaseAs(agent);
    await expire(agent);
    expect(told(await leaseAs(agent))).toEqual([401, 'certificate_expired']);

    const run = await reenroll(nameOf(agent), '--ttl', '3600');
    const { enrollment_secret: secret, expires_at, ...bundle } = await bundleOf(agent);
    const [, armed] = await armedFor(agent);
    expect({ run, mode: (await stat(fileOf(agent))).mode & 0o777, bundle, armed }).toEqual({
      run: { code: 0, stderr: '', stdout: expect.any(String) },
      mode: 0o600,
      bundle: {
        version: 1,
        node_id: agent.nodeId,
        ca_pem: await readFile(fleet.pkiPaths.caCert, 'utf8'),
        enroll_url: fleet.gateway.enrollUrl,
        gateway_url: fleet.gateway.agentUrl,
      },
      armed: {
        node_id: agent.nodeId,
        secret_sha256: hash('sha256', Buffer.from(secret, 'hex')),
        expires_at: Date.parse(expires_at),
        ca_sha256s: [fleet.pki.signer.caSha256],
      },
    });
    expect(Math.abs(Date.parse(expires_at) - Date.now() - 3_600_000)).toBeLessThan(120_000);
    expect(plainLines(run)).toEqual([
      'CA bundle: 1 CA from the log',
      expect.stringMatching(
        new RegExp(`^${nameOf(agent)} may enrol anew until \\S+Z \\(node_enrollment_secret_armed at \\d+\\)$`),
      ),
      `scp -p ${nameOf(agent)}.reenroll.json root@${nameOf(agent)}:`,
      `ssh root@${nameOf(agent)} pushleft-agent enroll --environment-file /etc/pushleft/agent.env --bundle ${nameOf(agent)}.reenroll.json`,
      'Each file (mode 0600) holds a secret that works once, for one node. Carry it over SSH and remove it here; on the host --bundle removes it.',
    ]);

    const why = await runCli(['fleet', 'why', nameOf(agent), '--json'], { env });
    expect(JSON.parse(why.stdout).hindrances[0]).toMatchObject({
      code: 'certificate_expired',
      remedy: expect.stringMatching(new RegExp(`^carry ${nameOf(agent)}\\.reenroll\\.json to its host before `)),
    });
    const back = await enrollOnHost(agent);
    expect((await leaseAs(back)).status).toBe(200);
    await expect(access(fileOf(agent))).rejects.toThrow('ENOENT');
  });

  test('an old snapshot was restored, its certificate is superseded: the first use of the new one revokes all older', async () => {
    const snapshot = await dueAgent(fleet);
    const newer = await renewedAgent(fleet, snapshot);
    expect([(await leaseAs(newer)).status, (await leaseAs(snapshot)).status]).toEqual([200, 401]);
    await reenroll(nameOf(snapshot));
    await bundleOf(snapshot);
    const back = await enrollOnHost(snapshot);
    expect((await leaseAs(newer)).status).toBe(200);
    expect([(await leaseAs(back)).status, (await leaseAs(newer)).status]).toEqual([200, 401]);
    expect(await certificatesOf(snapshot)).toEqual([
      ['enrollment', 'superseded'],
      ['renewal', 'superseded'],
      ['reenrollment', null],
    ]);
  });

  test('lost: may enrol and stays lost', async () => {
    const agent = await fleet.agent();
    await become(agent, lost(agent));
    const run = await reenroll(nameOf(agent));
    expect(plainLines(run)).toContain('it stays lost: it can only fetch the list of what to clean up');
    await bundleOf(agent);
    expect(told(await leaseAs(await enrollOnHost(agent)))).toEqual([403, 'node_lost']);
    const { rows } = await fleet.database.pool.query('SELECT status FROM fleet.fleet_nodes WHERE node_id = $1', [
      agent.nodeId,
    ]);
    expect(rows).toEqual([{ status: 'lost' }]);
  });

  test('repeated: arms another secret by design, for nobody knows the one before; the file is replaced', async () => {
    const agent = await fleet.agent();
    await reenroll(nameOf(agent));
    const first = await bundleOf(agent);
    const again = JSON.parse((await reenroll(nameOf(agent), '--json')).stdout);
    const second = await bundleOf(agent);
    expect((await armedFor(agent)).slice(1).map(({ secret_sha256 }) => secret_sha256)).toEqual(
      [first, second].map(({ enrollment_secret }) => hash('sha256', Buffer.from(enrollment_secret, 'hex'))),
    );
    expect(again).toEqual({
      ca_sha256s: [fleet.pki.signer.caSha256],
      nodes: [
        {
          node_id: agent.nodeId,
          name: nameOf(agent),
          file: `${nameOf(agent)}.reenroll.json`,
          expires_at: second.expires_at,
          dry_run: false,
          changed: true,
          events: [{ type: 'node_enrollment_secret_armed', position: expect.any(Number) }],
          error: null,
        },
      ],
    });
  });

  test('--dry-run: says what it would do, arms nothing and writes nothing', async () => {
    const agent = await fleet.agent();
    const run = await reenroll(nameOf(agent), '--dry-run');
    expect([run.code, plainLines(run)[1]]).toEqual([
      0,
      expect.stringMatching(/^would append node_enrollment_secret_armed: node-\w+ may enrol anew until /),
    ]);
    expect(await armedFor(agent)).toHaveLength(1);
    await expect(access(fileOf(agent))).rejects.toThrow('ENOENT');
  });

  test('retired, never enrolled, another file in the way: refused, each with its reason; the others are let in', async () => {
    const [good, gone, taken, waiting] = await Promise.all([
      fleet.agent(),
      fleet.agent(),
      fleet.agent(),
      fleet.provision(),
    ]);
    await become(gone, retired(gone));
    const foreign = JSON.stringify({ ...(await anyBundle()), node_id: good.nodeId });
    await writeFile(fileOf(taken), foreign);
    const run = await reenroll(...[gone, waiting, taken, good].map(nameOf), '--json');
    const { nodes } = JSON.parse(run.stdout);
    expect(nodes.map((node: { error: { code: string } | null }) => node.error?.code ?? null)).toEqual([
      'node_retired',
      'node_not_enrolled',
      'usage',
      null,
    ]);
    expect([run.code, await readFile(fileOf(taken), 'utf8')]).toEqual([2, foreign]);
    expect((await Promise.all([gone, waiting, taken, good].map(armedFor))).map(({ length }) => length)).toEqual([
      1, 1, 1, 2,
    ]);
    await bundleOf(good);
    const alone = await reenroll(nameOf(gone));
    expect([alone.code, alone.stderr]).toEqual([
      1,
      `pushleft-controller: node ${gone.nodeId} is retired\n  a retired node does not come back: provision a new one\n`,
    ]);
  });

  // Only root gets past the check of the folder to where no file can be made.
  test.runIf(process.getuid?.() === 0)(
    "the file cannot be written: exit 2, and the secret that was armed is nobody's; repeated elsewhere: done",
    async () => {
      const agent = await fleet.agent();
      const failed = await reenroll(nameOf(agent), '--output', '/proc', '--json');
      expect([failed.code, JSON.parse(failed.stdout).error.code, (await armedFor(agent)).length]).toEqual([
        2,
        'file_not_written',
        2,
      ]);
      expect((await reenroll(nameOf(agent))).code).toBe(0);
      const { enrollment_secret: secret } = await bundleOf(agent);
      expect((await armedFor(agent))[2]).toMatchObject({ secret_sha256: hash('sha256', Buffer.from(secret, 'hex')) });
    },
  );

  test('--pool: its nodes that can come back; a folder that is not there: exit 2, nothing is armed', async () => {
    const [agent, gone] = await Promise.all([fleet.agent('build'), fleet.agent('build'), fleet.provision('build')]);
    await become(gone, retired(gone));
    const nowhere = await reenroll('--pool', 'build', '--output', join(folder, 'nowhere'));
    expect([nowhere.code, await armedFor(agent)]).toEqual([2, [expect.anything()]]);
    const run = await reenroll('--pool', 'build', '--json');
    expect(JSON.parse(run.stdout).nodes.map(({ name }: { name: string }) => name)).toEqual([nameOf(agent)]);
    await bundleOf(agent);
  });

  test('the secrets of all these bundles: nowhere but in the files', async () => {
    const canaries = new CanaryScanner(Object.fromEntries(secrets.map((secret, i) => [`secret ${i}`, secret])));
    const left = (await readdir(folder)).filter((name) => name.endsWith('.reenroll.json'));
    expect(secrets.length).toBeGreaterThan(5);
    expect([
      ...canaries.scan(printed.join('\n'), 'output'),
      ...canaries.scan(fleet.logLines.join('\n'), 'gateway log'),
      ...(await canaries.scanDatabase(fleet.database.pool)),
      ...(await canaries.scanDirectory(folder, (path) => left.some((name) => path.endsWith(name)))),
    ]).toEqual([]);
    // What is looked for would be found.
    const bytes = new CanaryScanner(Object.fromEntries(secrets.map((s, i) => [`secret ${i}`, Buffer.from(s, 'hex')])));
    expect((await bytes.scanDirectory(folder)).length).toBeGreaterThan(0);
    expect(await bytes.scanDatabase(fleet.database.pool)).toEqual([]);
  });
});

/** A whole bundle, whosever it is. */
async function anyBundle(): Promise<ReenrollBundle> {
  return {
    version: 1,
    node_id: '11111111-1111-4111-8111-111111111111',
    enrollment_secret: 'ab'.repeat(32),
    ca_pem: await readFile(fleet.pkiPaths.caCert, 'utf8'),
    enroll_url: fleet.gateway.enrollUrl,
    gateway_url: fleet.gateway.agentUrl,
    expires_at: '2026-01-01T00:15:00.000Z',
  };
}
