import { copyFile, readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AgentProcess, startAgent } from '../agent/support/agent-process.ts';
import { runCli } from '../cli/support/run-cli.ts';
import { AgentClient } from '../gateway/support/client.ts';
import { gatewayEnvironment, type TestFleet } from '../gateway/support/fleet.ts';
import { told } from '../gateway/support/renewal.ts';
import { running } from '../gateway/support/running.ts';
import { loseCommand } from '../support/lose.ts';
import { waitFor } from '../support/wait-for.ts';
import { opensslVerify } from './support/openssl.ts';
import { type Host, type ProgramFleet, startProgramFleet } from './support/program-fleet.ts';

let fleet: ProgramFleet;
/** Provisioned in one phase and enrolled in a later one, by its name in the story. */
const hosts = new Map<string, Host>();
/** The instance that the lost host left running. */
let left: string;

beforeAll(async () => {
  fleet = await startProgramFleet();
}, 120_000);
afterAll(() => fleet[Symbol.asyncDispose]());

const rotate = (...args: readonly string[]) => fleet.cli('fleet', 'ca', 'rotate', ...args);

async function provision(name: string): Promise<Host> {
  const host = await fleet.host();
  hosts.set(name, host);
  return host;
}

function hostOf(name: string): Host {
  const host = hosts.get(name);
  if (host === undefined) throw new Error(`${name} was not provisioned`);
  return host;
}

/** Boots a host to the point where it has leased: enrolled, and its certificate used. Answers its agent. */
async function boot(name: string): Promise<AgentProcess> {
  const host = hostOf(name);
  await fleet.enroll(host);
  const agent = fleet.run(host);
  await waitFor(
    async () =>
      (
        await fleet.database.pool.query(
          `SELECT FROM fleet.fleet_node_certificates WHERE node_id = $1 AND first_used_at IS NOT NULL`,
          [host.nodeId],
        )
      ).rowCount,
    { what: `${name} has leased`, deadlineMs: 30_000 },
  );
  return agent;
}

/** The lost host's identity of before the rotation, on a connection of its own to a gateway. */
async function clientOf({ stateDir }: Host): Promise<AgentClient> {
  const read = (file: string) => readFile(`${stateDir}/pki/current/${file}`, 'utf8');
  const [cert, key, ca] = await Promise.all([read('certificate.pem'), read('key.pem'), read('gateway-ca.pem')]);
  return new AgentClient(`https://127.0.0.1:${fleet.gateways[0]?.agentPort}`, { cert, key, ca });
}

/** Gives a command that must not be refused. */
const operate: TestFleet['operate'] = async (definition, command) => {
  const outcome = await fleet.give(definition, command);
  if (!outcome.ok) throw new Error(`refused: ${outcome.refusal.code}`);
  return outcome;
};

/** Nodes in service without a used certificate in force of the CA that issues. */
async function leftBehind(): Promise<string[]> {
  const { rows } = await fleet.database.pool.query<{ name: string }>(
    `SELECT name FROM fleet.fleet_nodes WHERE status <> 'lost' AND node_id NOT IN (
       SELECT node_id FROM fleet.fleet_node_certificates, fleet.fleet_ca
       WHERE issuer_ca_sha256 = issuing_ca_sha256 AND first_used_at IS NOT NULL AND revoked_at IS NULL)`,
  );
  return rows.map(({ name }) => name);
}

/** One story: hosts enrol in every phase of a rotation, and the gateways are started again in each. */
describe('enrolment in each phase of a rotation', () => {
  test('before it: one enrols, two are provisioned with the old CA alone', async () => {
    await provision('early');
    await boot('early');
    await provision('booted in the overlap');
    await provision('booted at the very end');
    await copyFile(fleet.pki.caCert, `${fleet.folder}/old-ca.pem`);
  });

  test('before it: a host with an instance on it is given up', async () => {
    const host = await provision('lost');
    const agent = await boot('lost');
    await agent[Symbol.asyncDispose]();
    [left = ''] = await running({ operate }, host, 1);
    await operate(loseCommand, { node_id: host.nodeId });
  });

  test('begun, the new CA not issuing yet: enrolled by the old CA, also after a restart', async () => {
    fleet.signalGateway(1, 'SIGSTOP');
    expect(await rotate('--begin', '--wait', '1')).toMatchObject({ code: 1 });
    fleet.signalGateway(1, 'SIGCONT');
    await fleet.restartGateways();
    await provision('begun');
    await boot('begun');
    const certificate = `${hostOf('begun').stateDir}/pki/current/certificate.pem`;
    expect(await opensslVerify(`${fleet.folder}/old-ca.pem`, certificate)).toBe(`${certificate}: OK`);
  });

  test('issuing: enrolled by the new CA, with user-data of now and of before, also after a restart', async () => {
    expect(await rotate('--begin')).toMatchObject({ code: 0, stderr: '' });
    await fleet.restartGateways();
    await provision('issuing');
    await boot('issuing');
    await boot('booted in the overlap');
    for (const name of ['issuing', 'booted in the overlap']) {
      const certificate = `${hostOf(name).stateDir}/pki/current/certificate.pem`;
      expect(await opensslVerify(fleet.pki.caCert, certificate)).toBe(`${certificate}: OK`);
    }
  });

  test('complete while a secret with the old CA alone is good: refused, and that host is the only one that is named', async () => {
    const late = hostOf('booted at the very end');
    await waitFor(async () => (await leftBehind()).length === 1, { what: 'the others have moved', deadlineMs: 60_000 });
    const refused = await rotate('--complete');
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining(`${late.name}: secret_without_new_ca`) });
    for (const { name } of [...hosts.values()].filter((host) => host !== late)) {
      expect(refused.stderr).not.toContain(name);
    }
  });

  test('that host boots: complete goes through, one that is provisioned afterwards enrols, and nobody is left behind', async () => {
    await boot('booted at the very end');
    using lost = await clientOf(hostOf('lost'));
    expect(told(await lost.lease())).toEqual([403, 'node_lost']);
    expect(await rotate('--complete')).toMatchObject({ code: 0, stderr: '' });
    const answered = await lost.lease();
    expect({ told: told(answered), reused: answered.reused }).toEqual({
      told: [401, 'certificate_unknown'],
      reused: true,
    });
    await fleet.restartGateways();
    await provision('afterwards');
    await boot('afterwards');
    expect(await leftBehind()).toEqual([]);
  });

  test('the lost host, re-enrolled: still lost, and told what it left running', async () => {
    const { name, env } = hostOf('lost');
    const reached = {
      PUSHLEFT_GATEWAY_URL: env['PUSHLEFT_GATEWAY_URL'],
      PUSHLEFT_ENROLL_URL: env['PUSHLEFT_ENROLL_URL'],
    };
    const operator = { ...gatewayEnvironment(fleet.database.url, fleet.pki), ...(reached as Record<string, string>) };
    const armed = await runCli(['fleet', 'reenroll', name], { env: operator, cwd: fleet.folder });
    expect(armed).toMatchObject({ code: 0, stderr: '' });
    await using enrolling = startAgent(['enroll', '--bundle', `${fleet.folder}/${name}.reenroll.json`], env);
    expect(await enrolling.exited).toBe(0);
    using client = await clientOf(hostOf('lost'));
    const answered = await client.lease();
    expect(told(answered)).toEqual([403, 'node_lost']);
    expect(answered.body).toMatchObject({ cleanup: [{ kind: 'teardown_application', instance_id: left }] });
  });
});
