import { createPublicKey, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentTbs, assembleCertificate, newSerial, nominalWindow } from '../../../src/pki/certificate.ts';
import { provisionNode } from '../../../src/provisioning/provision.ts';
import { systemPorts } from '../../../src/provisioning/system-ports.ts';
import { argumentsOf } from '../../../src/up/process-identity.ts';
import { createHetznerStub, type HetznerStub } from '../../../stubs/hetzner/stub.ts';
import { startFleet, type TestFleet } from '../../gateway/support/fleet.ts';
import { releaseKeys } from '../../hetzner/cloud-init/support.ts';
import { someRequest } from '../../provisioning/support.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { waitFor } from '../../support/wait-for.ts';

const BOOT_AGENT = join(import.meta.dirname, '../../../stubs/hetzner/boot-agent.ts');
const API_TOKEN = `canary-${randomBytes(8).toString('hex')}`;

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let fleet: TestFleet;
let stub: HetznerStub;
let listening: Awaited<ReturnType<HetznerStub['listen']>>;

beforeAll(async () => {
  [folder, fleet] = await Promise.all([temporaryDirectory(), startFleet()]);
  const command = `exec '${process.execPath}' '${BOOT_AGENT}'`;
  stub = createHetznerStub({ actionMs: 20, token: API_TOKEN, bootCommand: { command, dir: folder.path } });
  listening = await stub.listen();
});

afterAll(async () => {
  await listening.close();
  await fleet[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

/** A machine boots and enrols in seconds; a test that hangs would not say in which step. */
const PROVISION_MS = 40_000;

/** Provisions a node the way an operator does, until its agent, a real process, has enrolled. */
async function provision() {
  const { publicKey } = releaseKeys();
  const ports = systemPorts({
    databaseUrl: fleet.database.url,
    pool: fleet.database.pool,
    transactor: fleet.operator,
    actor: { kind: 'operator', id: 'ada@ops' },
    settings: {
      apiToken: API_TOKEN,
      apiUrl: listening.url,
      sshKeys: ['operator'],
      operatorCidrs: ['203.0.113.0/24'],
      caFile: fleet.pkiPaths.trustBundle,
      gatewayUrl: fleet.gateway.agentUrl,
      enrollUrl: fleet.gateway.enrollUrl,
      releaseUrl: 'https://releases.example.org/agent',
      releasePublicKey: publicKey,
      agentVersion: '0.1.0',
      secretTtlMs: 900_000,
    },
  });
  const request = someRequest();
  const outcome = await provisionNode(ports, request, { signal: AbortSignal.timeout(PROVISION_MS) });
  if (!outcome.ok) throw new Error(JSON.stringify(outcome));
  const server = stub.state().servers.find(({ name }) => name === request.name);
  const directory = join(folder.path, String(server?.id));
  return { nodeId: request.nodeId, server, directory, log: () => readFileSync(join(directory, 'agent.log'), 'utf8') };
}

/** Processes of the machine: those that name its directory in their arguments. */
function processesOf(directory: string): readonly number[] {
  const pids = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
  return pids.map(Number).filter((pid) => argumentsOf(pid).some((argument) => argument.includes(directory)));
}

const starts = (log: string) => log.split('"agent started"').length - 1;

test('a machine boots: its agent enrols from the user-data and leases; nothing of the secret is left', async () => {
  const { nodeId, server, directory, log } = await provision();
  await waitFor(
    async () => {
      const { rows } = await fleet.database.pool.query('SELECT FROM telemetry.node_liveness WHERE node_id = $1', [
        nodeId,
      ]);
      return rows.length;
    },
    { what: 'the agent was heard', deadlineMs: 20_000 },
  );
  expect(existsSync(join(directory, 'user-data'))).toBe(false);
  const state = join(directory, 'root/var/lib/pushleft');
  expect(readdirSync(state).sort()).toEqual(expect.arrayContaining(['data', 'pki']));
  expect(existsSync(join(state, 'enrollment-secret'))).toBe(false);
  expect(statSync(state).mode & 0o777).toBe(0o700);
  const secret = /[0-9a-f]{64}(?=\n)/.exec(server?.userData ?? '')?.[0] ?? 'none';
  const told = [log(), ...processesOf(directory).map((pid) => argumentsOf(pid).join(' '))].join('\n');
  expect(told).toContain('agent started');
  expect(told).not.toContain(secret);
  const environments = processesOf(directory).map((pid) => readFileSync(`/proc/${pid}/environ`, 'utf8'));
  expect(environments.join('\n')).not.toMatch(new RegExp(`${API_TOKEN}|DATABASE_URL|${secret}`));
});

test('its agent is killed: started again with the same identity', async () => {
  const { directory, log } = await provision();
  await waitFor(() => starts(log()) === 1, { what: 'the agent runs', deadlineMs: 20_000 });
  for (const pid of processesOf(directory)) process.kill(pid, 'SIGKILL');
  await waitFor(() => starts(log()) === 2, { what: 'the agent runs again', deadlineMs: 20_000 });
  expect(log()).toContain('boot-agent: the agent ended with 128 and is started again in 1000 ms');
});

test('the machine is rebooted: the user-data is not run again, the agent is', async () => {
  const { server, directory, log } = await provision();
  await waitFor(() => starts(log()) === 1, { what: 'the agent runs', deadlineMs: 20_000 });
  const headers = { authorization: `Bearer ${API_TOKEN}` };
  const reboot = await fetch(`${listening.url}/servers/${server?.id}/actions/reboot`, { method: 'POST', headers });
  expect(reboot.status).toBe(201);
  await waitFor(() => starts(log()) === 2, { what: 'the agent runs again', deadlineMs: 30_000 });
  expect(log()).toContain('already_enrolled');
  expect(log()).toContain('agent stopped');
  expect(existsSync(join(directory, 'root/var/lib/pushleft/enrollment-secret'))).toBe(false);
});

test('rebooted when its certificate has expired: the agent runs all the same, and says what it waits for', async () => {
  const { nodeId, server, directory, log } = await provision();
  await waitFor(() => starts(log()) === 1, { what: 'the agent runs', deadlineMs: 20_000 });
  const identity = join(directory, 'root/var/lib/pushleft/pki/current');
  writeFileSync(join(identity, 'certificate.pem'), await expiredCertificate(nodeId, join(identity, 'key.pem')));
  const headers = { authorization: `Bearer ${API_TOKEN}` };
  const reboot = await fetch(`${listening.url}/servers/${server?.id}/actions/reboot`, { method: 'POST', headers });
  expect(reboot.status).toBe(201);
  await waitFor(() => starts(log()) === 2, { what: 'the agent runs again', deadlineMs: 30_000 });
  await waitFor(() => log().includes('enroll --bundle'), { what: 'the remedy is named', deadlineMs: 20_000 });
});

/** A certificate of the fleet's CA for the node's own key, whose day was a week ago. */
async function expiredCertificate(nodeId: string, keyFile: string): Promise<string> {
  const { signer } = fleet.pki;
  const tbs = agentTbs({
    nodeId,
    spkiDer: createPublicKey(readFileSync(keyFile)).export({ format: 'der', type: 'spki' }),
    serialHex: newSerial(randomBytes),
    issuer: signer.issuer,
    ...nominalWindow(Date.now() - 7 * 86_400_000, 86_400),
  });
  return assembleCertificate(tbs, await signer.sign(tbs)).pem;
}

test('the machine is deleted: no process and no file of it is left', async () => {
  const { server, directory, log } = await provision();
  await waitFor(() => starts(log()) === 1, { what: 'the agent runs', deadlineMs: 20_000 });
  const headers = { authorization: `Bearer ${API_TOKEN}` };
  // Locked (423) while an action of the server still runs.
  const signal = AbortSignal.timeout(20_000);
  const deletion = async () =>
    (await fetch(`${listening.url}/servers/${server?.id}`, { method: 'DELETE', headers, signal })).ok;
  await waitFor(deletion, { what: 'the server can be deleted', deadlineMs: 20_000 });
  await waitFor(() => !existsSync(directory), { what: 'the disk is erased', deadlineMs: 20_000 });
  expect(processesOf(directory)).toEqual([]);
});
