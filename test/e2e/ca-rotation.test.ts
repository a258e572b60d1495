import { copyFile, cp, readFile, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PkiPaths } from '../../src/pki/files.ts';
import type { AgentProcess } from '../agent/support/agent-process.ts';
import { waitFor } from '../support/wait-for.ts';
import { type ClientFiles, opensslVerify, sClient, servedCertificate } from './support/openssl.ts';
import { startGatewayProgram } from './support/program.ts';
import { admit, fingerprintsOf, type Host, type ProgramFleet, startProgramFleet } from './support/program-fleet.ts';

const AGENTS = 5;
/** The acceptance: who is not trusted any more is sent away within this time. */
const CLOSED_WITHIN_MS = 1_000;

let fleet: ProgramFleet;
let hosts: Host[];
let agents: AgentProcess[];
let late: Host;
let oldClient: ClientFiles;
let work: { stop(): Promise<void> };

beforeAll(async () => {
  fleet = await startProgramFleet();
  hosts = await Promise.all(Array.from({ length: AGENTS }, () => fleet.host()));
  await Promise.all(hosts.map((host) => fleet.enroll(host)));
  agents = hosts.map((host) => fleet.run(host));
  await Promise.all(hosts.map((host) => admit(fleet, host)));
  late = await fleet.host();
  await fleet.enroll(late);
  oldClient = await keepIdentity(hosts[0] as Host);
  work = keepBusy();
}, 180_000);

afterAll(async () => {
  await work.stop();
  await fleet[Symbol.asyncDispose]();
});

/** Steps of one story on one fleet whose agents lease all the time; each test is a step. */
describe('the CA is rotated under a working fleet', () => {
  test('a gateway that does not learn of the new CA: it does not issue, and the attempt is on record', async () => {
    const own = `${fleet.folder}/pki-of-another-host`;
    await cp(`${fleet.folder}/pki`, own, { recursive: true });
    await using apart = await startGatewayProgram(fleet.database.url, inFolder(own));
    const begun = await fleet.cli('fleet', 'ca', 'rotate', '--begin', '--wait', '4');
    expect(begun).toMatchObject({ code: 1, stderr: expect.stringContaining(`:${apart.child.pid}`) });
    expect(await eventTypes('ca_%')).toEqual(['ca_initialized', 'ca_rotation_begun', 'ca_rotation_refused']);
  });

  test('aborted: one CA is trusted again, and it is the first one', async () => {
    const aborted = await fleet.cli('fleet', 'ca', 'rotate', '--abort');
    expect(aborted).toMatchObject({ code: 0, stderr: '' });
    expect(fingerprintsOf(await readFile(fleet.pki.trustBundle, 'utf8'))).toEqual(
      fingerprintsOf(await readFile(oldClient.ca, 'utf8')),
    );
    expect((await eventTypes('ca_%')).at(-1)).toBe('ca_rotation_aborted');
  });

  test('begun again: every agent that leases moves over', async () => {
    await copyFile(fleet.pki.caCert, `${fleet.folder}/old-ca.pem`);
    const begun = await fleet.cli('fleet', 'ca', 'rotate', '--begin');
    expect(begun).toMatchObject({ code: 0 });
    await waitFor(async () => (await moved()).length === AGENTS, {
      what: 'every agent uses a certificate of the new CA',
      deadlineMs: 60_000,
    });
  });

  test('complete while one host is off: refused, and it is named', async () => {
    const refused = await fleet.cli('fleet', 'ca', 'rotate', '--complete');
    expect(refused.code).toBe(1);
    expect(refused.stdout + refused.stderr).toContain(late.name);
    for (const { name } of hosts) expect(refused.stdout + refused.stderr).not.toContain(name);
    expect((await eventTypes('ca_%')).at(-1)).toBe('ca_rotation_refused');
  });

  test('the host is on again: it renews, and complete goes through', async () => {
    const ask = (...more: string[]) =>
      sClient(fleet.gateways[0]?.agentPort ?? 0, currentOf(late), more, (text) => text.includes('HTTP/1.1'));
    expect((await ask('-sess_out', sessionFile())).received).toContain('HTTP/1.1 200');
    // Until then the saved session is a good one: what is refused later is not refused for being none.
    expect(await readFile(sessionFile(), 'utf8')).toContain('BEGIN SSL SESSION PARAMETERS');
    expect((await ask('-sess_in', sessionFile())).received).toContain('HTTP/1.1 200');
    agents.push(fleet.run(late));
    await waitFor(async () => (await moved()).length === AGENTS + 1, {
      what: 'the last one moves',
      deadlineMs: 60_000,
    });
    expect(await fleet.cli('fleet', 'ca', 'rotate', '--complete')).toMatchObject({ code: 0, stderr: '' });
    expect((await eventTypes('ca_%')).at(-1)).toBe('ca_rotation_completed');
  });

  test('both gateways: a certificate of the new CA, says openssl', async () => {
    for (const { agentPort, enrollPort } of fleet.gateways) {
      for (const port of [agentPort, enrollPort]) {
        const file = `${fleet.folder}/served-${port}.pem`;
        await waitFor(
          async () => {
            await writeFile(file, await servedCertificate(port));
            return (await opensslVerify(fleet.pki.caCert, file)) === `${file}: OK`;
          },
          { what: `port ${port} serves a certificate of the new CA`, deadlineMs: 10_000, intervalMs: 200 },
        );
        expect(await opensslVerify(`${fleet.folder}/old-ca.pem`, file)).toContain('error');
      }
    }
    const fresh = await keepIdentity(hosts[1] as Host);
    expect(await opensslVerify(fleet.pki.caCert, fresh.cert)).toBe(`${fresh.cert}: OK`);
  });

  test.each([
    ['without a saved session', () => []],
    ['with a session from before', () => ['-sess_in', sessionFile()]],
  ])('a client of the old CA %s: no HTTP byte, closed within a second', async (_, options) => {
    for (const { agentPort } of fleet.gateways) {
      const run = await sClient(agentPort, oldClient, options());
      expect(run.received).toBe('');
      expect(run.closedAfterMs).toBeLessThan(CLOSED_WITHIN_MS);
    }
  });

  test('all the while: no connection error, no answer but 200, the same processes', async () => {
    await delay(2_500); // Every agent asks at least once more of the fleet as it is now.
    await work.stop();
    expect(agents.map(({ child }) => child.exitCode)).toEqual(agents.map(() => null));
    expect(agents.flatMap((agent) => agent.stderr().split('\n').filter(isTrouble))).toEqual([]);
    expect([...fleet.agentsEntrance.errors, ...fleet.enrollEntrance.errors]).toEqual([]);
    expect(await answersOtherThan200()).toEqual([]);
  });

  test('the audit: replayed from the log, and the chain holds', async () => {
    const audit = await fleet.cli('fleet', 'ca', 'audit', '--all', '--verify', '--json');
    expect(audit).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(audit.stdout).rotations).toMatchObject([{ status: 'aborted' }, { status: 'completed' }]);
  });
});

const sessionFile = () => `${fleet.folder}/session.pem`;

/** Jobs that never end, so that leases are granted, kept alive and completed all the time. */
function keepBusy() {
  const stopping = new AbortController();
  const run = async () => {
    while (!stopping.signal.aborted) {
      await fleet.queueJob();
      await delay(150, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function inFolder(folder: string): PkiPaths {
  const at = (path: string) => path.replace(`${fleet.folder}/pki`, folder);
  const { gatewayCert, gatewayKey, trustBundle, caCert, caKey } = fleet.pki;
  return {
    gatewayCert: at(gatewayCert),
    gatewayKey: at(gatewayKey),
    trustBundle: at(trustBundle),
    caCert: at(caCert),
    caKey: at(caKey),
  };
}

/** The files of the identity that a host has now. */
function currentOf({ stateDir }: Host): ClientFiles {
  const current = `${stateDir}/pki/current`;
  return { cert: `${current}/certificate.pem`, key: `${current}/key.pem`, ca: `${current}/gateway-ca.pem` };
}

/** A copy of that identity, which renewals do not touch. */
async function keepIdentity(host: Host): Promise<ClientFiles> {
  const copy = `${fleet.folder}/kept-${host.name}`;
  await cp(`${host.stateDir}/pki/current`, copy, { recursive: true, dereference: true });
  return { cert: `${copy}/certificate.pem`, key: `${copy}/key.pem`, ca: `${copy}/gateway-ca.pem` };
}

async function eventTypes(like: string): Promise<string[]> {
  const { rows } = await fleet.database.pool.query<{ type: string }>(
    'SELECT type FROM log.events WHERE type LIKE $1 ORDER BY position',
    [like],
  );
  return rows.map(({ type }) => type);
}

/** Nodes that have used a certificate of the CA that issues now. */
async function moved(): Promise<unknown[]> {
  const { rows } = await fleet.database.pool.query(
    `SELECT DISTINCT node_id FROM fleet.fleet_node_certificates, fleet.fleet_ca
     WHERE issuer_ca_sha256 = next_ca_sha256 AND first_used_at IS NOT NULL AND revoked_at IS NULL`,
  );
  return rows;
}

/** A line of an agent's log that tells of anything but ordinary life. */
function isTrouble(line: string): boolean {
  return line !== '' && !(line.startsWith('{') && JSON.parse(line).level === 'info');
}

async function answersOtherThan200(): Promise<string[]> {
  const metrics = await Promise.all(
    fleet.gateways.map(async ({ adminUrl }) => (await fetch(`${adminUrl}/metrics`)).text()),
  );
  return metrics
    .join('\n')
    .split('\n')
    .filter((line) => line.startsWith('pushleft_gateway_requests_total{') && !line.includes('status="200"'));
}
