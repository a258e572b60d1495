import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { abortRotationCommand, beginRotationCommand, initializeCaCommand } from '../../src/commands/ca.ts';
import { readUserData } from '../../src/hetzner/cloud-init/read-user-data.ts';
import { caBundleLines } from '../../src/provisioning/ca-bundle.ts';
import { provisionNode, resumeNode } from '../../src/provisioning/provision.ts';
import { startFleet, type TestFleet } from '../gateway/support/fleet.ts';
import { newCa, type TestCa } from '../pki/support.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { provisioningWorld, someRequest, type World } from './support.ts';
import { Tap } from './tap.ts';

const cleanup = new AsyncDisposableStack();
let fleet: TestFleet;
let folder: string;
let first: TestCa;
let second: TestCa;
beforeAll(async () => {
  ({ path: folder } = cleanup.use(await temporaryDirectory()));
  fleet = cleanup.use(await startFleet());
  [first, second] = await Promise.all([newCa('First CA'), newCa('Second CA')]);
});
afterAll(() => cleanup.disposeAsync());

const named = ({ certPem, signer }: TestCa) => ({
  ca_sha256: signer.caSha256,
  ca_pem: certPem,
  not_after: signer.caNotAfterMs,
});
const begin = () =>
  fleet.operate(beginRotationCommand, {
    rotation_id: randomUUID(),
    previous_ca_sha256: first.signer.caSha256,
    ...named(second),
  });

/** Provisions until only the enrolment is missing: what the new host was told, what the log says of its secret, and what was said. */
async function provisioned(world: World, caFile: string | null) {
  const request = someRequest();
  const said: string[] = [];
  const onProgress = ({ message }: { message: string }) => void said.push(message);
  const outcome = await provisionNode(world.ports(new Tap(), { caFile }), request, { wait: false, onProgress });
  const server = world.stub.state().servers.find(({ name }) => name === request.name);
  return {
    outcome,
    caPem: server === undefined ? undefined : readUserData(server.userData).gatewayCaPem,
    armed: (await world.readNode(request.nodeId))?.armed_secrets.map(({ ca_sha256s }) => ca_sha256s),
    said: said.filter((line) => /CA/.test(line)),
  };
}

describe('the CA bundle of a new host', () => {
  test('neither a file nor a CA in the log: refused before there is a node, and both remedies are named', async () => {
    await using world = await provisioningWorld(fleet, { enrols: 'never' });
    const { outcome, armed } = await provisioned(world, null);
    expect(outcome).toEqual({
      ok: false,
      nodeId: null,
      events: [],
      refusals: [
        {
          code: 'ca_not_initialized',
          message:
            "there is no CA by which a host could believe the gateway: the log does not know the fleet's, and PUSHLEFT_FLEET_GATEWAY_CA_FILE is not set",
          remedy:
            "run `pushleft-controller fleet ca init` on the gateway's host, or set PUSHLEFT_FLEET_GATEWAY_CA_FILE",
        },
      ],
    });
    expect([armed, world.stub.requests()]).toEqual([undefined, []]);
  });

  test('one CA in the log: that one, and it says so', async () => {
    await fleet.operate(initializeCaCommand, named(first));
    await using world = await provisioningWorld(fleet, { enrols: 'never' });
    expect(await provisioned(world, null)).toMatchObject({
      caPem: first.certPem,
      armed: [[first.signer.caSha256]],
      said: ['CA bundle: 1 CA from the log'],
    });
  });

  test('a run that was cut before the create, resumed when a rotation has begun: the bundle of now', async () => {
    await using world = await provisioningWorld(fleet, { enrols: 'never' });
    const request = someRequest();
    const cut = new AbortController();
    const ports = world.ports(new Tap(), { caFile: null });
    const stopAtServer = ({ step }: { step: string }) => step === 'capacity' && cut.abort();
    await provisionNode(ports, request, { wait: false, signal: cut.signal, onProgress: stopAtServer });
    expect(world.creates()).toBe(0);
    await begin();
    expect(await resumeNode(ports, request.nodeId, { wait: false })).toMatchObject({ ok: true });
    const [server] = world.stub.state().servers;
    expect(
      readUserData(server?.userData ?? '')
        .gatewayCaPem.split(/(?<=END CERTIFICATE-----\n)/)
        .toSorted(),
    ).toEqual([first.certPem, second.certPem].toSorted());
  });

  test('during the overlap: both CAs, in the event too; a file that lacks one: used, with a loud warning', async () => {
    const file = join(folder, 'old.pem');
    await writeFile(file, first.certPem);
    await using world = await provisioningWorld(fleet, { enrols: 'never' });
    const fromLog = await provisioned(world, null);
    expect([fromLog.armed?.[0]?.toSorted(), fromLog.said]).toEqual([
      [first.signer.caSha256, second.signer.caSha256].toSorted(),
      ['CA bundle: 2 CAs from the log'],
    ]);
    const fromFile = await provisioned(world, file);
    expect(fromFile).toMatchObject({ caPem: first.certPem, armed: [[first.signer.caSha256]] });
    expect(fromFile.said).toEqual([
      `CA bundle: 1 CA from ${file}`,
      expect.stringContaining(`WARNING: ${file} lacks the CA ${second.signer.caSha256.slice(0, 16)}…`),
    ]);
  });

  test('the rotation was aborted: one CA again', async () => {
    await fleet.operate(abortRotationCommand, {});
    await using world = await provisioningWorld(fleet, { enrols: 'never' });
    expect(await provisioned(world, null)).toMatchObject({ caPem: first.certPem, armed: [[first.signer.caSha256]] });
  });

  test('a file that was replaced by rubbish since the start: refused, nothing is armed', async () => {
    const file = join(folder, 'rubbish.pem');
    await writeFile(file, 'not a certificate\n');
    await using world = await provisioningWorld(fleet, { enrols: 'never' });
    const { outcome, armed } = await provisioned(world, file);
    expect(outcome).toMatchObject({ ok: false, nodeId: null, refusals: [{ code: 'ca_file_unusable' }] });
    expect(armed).toBeUndefined();
  });
});

test('nothing lacking: one line', () =>
  expect(caBundleLines({ pem: '', caSha256s: ['ab'], file: '/ca.pem', lacking: [] })).toEqual([
    'CA bundle: 1 CA from /ca.pem',
  ]));
