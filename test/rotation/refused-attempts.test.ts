import { rename, rm } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import type { EventData } from '../../src/domain/event/catalogue.ts';
import { ensureDevelopmentPki } from '../../src/pki/development-ca.ts';
import { initialize } from '../../src/rotation/initialize.ts';
import type { RotationOutcome } from '../../src/rotation/outcome.ts';
import { abort, begin, complete, reissueGateway } from '../../src/rotation/phases.ts';
import type { RotationPorts } from '../../src/rotation/ports.ts';
import { begun, empty, fresh, halfBegun, pathsOf, portsOf, stateOf, type World } from './support/world.ts';

type Refused = Pick<EventData<'ca_rotation_refused'>, 'action' | 'reason'>;

/** Runs a phase that is refused; what it put on record, and whether files were left as they were. */
async function attempted(world: World, phase: (ports: RotationPorts) => Promise<RotationOutcome>) {
  const [before, events] = [await stateOf(world), world.log.events.length];
  const outcome = await phase(portsOf(world));
  const record = world.log.events.slice(events).map((event): Refused | string => {
    if (event.type !== 'ca_rotation_refused') return event.type;
    return { action: event.data.action, reason: event.data.reason };
  });
  expect((await stateOf(world)).names).toEqual(before.names);
  return { code: outcome.kind === 'refused' ? outcome.refusal.code : outcome.kind, record };
}

const onRecord = (action: Refused['action'], reason: Refused['reason']) => ({
  code: reason,
  record: [{ action, reason }],
});

describe('an attempt that is refused is on record', () => {
  test.each([
    ['complete', (ports: RotationPorts) => complete(ports, 0)],
    ['abort', abort],
  ] as const)('%s, and no rotation was ever begun', async (action, phase) =>
    expect(await attempted(await fresh(), phase)).toEqual(onRecord(action, 'ca_no_rotation')),
  );

  test('abort, and the rotation was completed', async () => {
    const world = await begun();
    await complete(portsOf(world), 0);
    expect(await attempted(world, abort)).toEqual(onRecord('abort', 'ca_no_rotation'));
  });

  test("begin, and this host has lost the CA's key", async () => {
    const world = await fresh();
    await rm(pathsOf(world).caKey);
    expect(await attempted(world, (ports) => begin(ports, 0))).toEqual(onRecord('begin', 'ca_key_missing'));
  });

  test('begin goes on, and this host has lost the key of the CA that is archived', async () => {
    const world = await halfBegun();
    await rm(`${pathsOf(world).caKey}.previous`);
    const { caKey, caCert } = pathsOf(world);
    await rename(caKey, `${caKey}.next`);
    await rename(caCert, `${caCert}.next`);
    expect(await attempted(world, (ports) => begin(ports, 0))).toEqual(onRecord('issue', 'ca_key_missing'));
  });

  test('complete, and this host has lost the key of the new CA', async () => {
    const world = await begun();
    await rm(pathsOf(world).caKey);
    const phase = (ports: RotationPorts) => complete(ports, 0);
    expect(await attempted(world, phase)).toEqual(onRecord('complete', 'ca_key_missing'));
  });

  test('abort, and this host has lost the key of the CA that is to stay', async () => {
    const world = await begun();
    await rm(`${pathsOf(world).caKey}.previous`);
    expect(await attempted(world, abort)).toEqual(onRecord('abort', 'ca_key_missing'));
  });

  test('reissue-gateway, and this host has lost the key of the CA that every agent trusts', async () => {
    const world = await fresh();
    await rm(pathsOf(world).caKey);
    expect(await attempted(world, reissueGateway)).toEqual(onRecord('reissue', 'ca_key_missing'));
  });

  test("reissue-gateway, and the gateway's key is gone", async () => {
    const world = await fresh();
    await rm(pathsOf(world).gatewayKey);
    expect(await attempted(world, reissueGateway)).toEqual(onRecord('reissue', 'gateway_certificate_unreadable'));
  });

  test('init during a rotation', async () =>
    expect(await attempted(await begun(), initialize)).toEqual(onRecord('init', 'ca_rotation_running')));

  test('init on a host with another CA', async () => {
    const world = await fresh();
    await rm(world.folder, { recursive: true });
    await ensureDevelopmentPki(world.folder, { dnsNames: ['localhost'], ipAddresses: [], now: Date.now() });
    expect(await attempted(world, initialize)).toEqual(onRecord('init', 'ca_already_initialized'));
  });
});

test.each([
  ['begin', (ports: RotationPorts) => begin(ports, 0)],
  ['complete', (ports: RotationPorts) => complete(ports, 0)],
  ['abort', abort],
  ['reissue-gateway', reissueGateway],
])('%s, and the log knows no CA: refused, not on record', async (_, phase) =>
  expect(await attempted(await empty(), phase)).toEqual({ code: 'ca_not_initialized', record: [] }),
);
