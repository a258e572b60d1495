import { X509Certificate } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { makeCa, makeKeyPem } from '../../src/pki/authority.ts';
import { issued } from '../../src/pki/bundle.ts';
import { initialize } from '../../src/rotation/initialize.ts';
import { begun, empty, fresh, pathsOf, portsOf, stateOf, type World } from './support/world.ts';

const NAMES = { commonName: 'Pushleft gateway', dnsNames: ['gateway.example'], ipAddresses: ['203.0.113.5'] };
const WHOLE = ['ca.key', 'ca.pem', 'gateway.key', 'gateway.pem', 'trust-bundle.pem'];

const certificate = async (path: string) => new X509Certificate(await readFile(path));
const told = (world: World) =>
  world.log.events.map(({ type, data }) => ('cause' in data ? [type, data.cause] : [type]));

describe('fleet ca init on a host without files', () => {
  test('with the names of the gateway: makes all of them, the CA and the certificate are on record', async () => {
    const world = await empty();
    expect(await initialize(portsOf(world), NAMES)).toEqual({ kind: 'done', changed: true });
    expect((await stateOf(world)).names).toEqual(WHOLE);
    expect(told(world)).toEqual([['ca_initialized'], ['gateway_certificate_issued', 'init']]);
    const gateway = await certificate(pathsOf(world).gatewayCert);
    expect(gateway.subjectAltName).toBe('DNS:gateway.example, IP Address:203.0.113.5');
    expect(issued(await certificate(pathsOf(world).caCert), gateway)).toBe(true);
  });

  test('repeated: no new event, nothing is written', async () => {
    const world = await empty();
    await initialize(portsOf(world), NAMES);
    const trace: string[] = [];
    expect(await initialize(portsOf(world, { trace }), NAMES)).toEqual({ kind: 'done', changed: false });
    expect(told(world)).toHaveLength(2);
  });

  test('without names: refused, nothing is made', async () => {
    const world = await empty();
    expect(await initialize(portsOf(world))).toMatchObject({ kind: 'refused', refusal: { code: 'ca_missing' } });
    expect((await stateOf(world)).names).toEqual([]);
  });

  test('of a fleet that has a CA: refused, none is made', async () => {
    const world = await fresh();
    for (const name of WHOLE) await rm(`${world.folder}/${name}`);
    expect(await initialize(portsOf(world), NAMES)).toMatchObject({
      kind: 'refused',
      refusal: { code: 'ca_key_missing' },
    });
    expect((await stateOf(world)).names).toEqual([]);
  });
});

describe('fleet ca init on a host with files', () => {
  test("another fleet's CA in them, and no gateway certificate: refused, nothing is written", async () => {
    const world = await fresh();
    for (const name of WHOLE) await rm(`${world.folder}/${name}`);
    const keyPem = await makeKeyPem();
    await writeFile(pathsOf(world).caKey, keyPem, { mode: 0o600 });
    await writeFile(pathsOf(world).caCert, (await makeCa(keyPem, Date.now())).pem);
    expect(await initialize(portsOf(world), NAMES)).toMatchObject({ refusal: { code: 'ca_already_initialized' } });
    expect((await stateOf(world)).names).toEqual(['ca.key', 'ca.pem']);
  });

  test.each([
    ['the log knows the CA', fresh, 'gateway_names_differ'],
    ['during a rotation', begun, 'ca_rotation_running'],
  ] as const)('other names than in its certificate, %s: refused, the certificate stays', async (_, prepare, code) => {
    const world = await prepare();
    const before = await readFile(pathsOf(world).gatewayCert, 'utf8');
    expect(await initialize(portsOf(world), NAMES)).toMatchObject({ refusal: { code } });
    expect(await readFile(pathsOf(world).gatewayCert, 'utf8')).toBe(before);
  });

  test('the certificate of the gateway was moved away: one for the names by the CA that issues, whatever lies in .previous', async () => {
    const world = await fresh();
    const { caKey, caCert, gatewayCert, gatewayKey } = pathsOf(world);
    const stale = await makeKeyPem();
    await writeFile(`${caKey}.previous`, stale, { mode: 0o600 });
    await writeFile(`${caCert}.previous`, (await makeCa(stale, Date.now())).pem);
    await rm(gatewayCert);
    const key = await readFile(gatewayKey, 'utf8');
    expect(await initialize(portsOf(world), NAMES)).toEqual({ kind: 'done', changed: true });
    expect(issued(await certificate(caCert), await certificate(gatewayCert))).toBe(true);
    expect([await readFile(gatewayKey, 'utf8'), told(world).at(-1)]).toEqual([
      key,
      ['gateway_certificate_issued', 'init'],
    ]);
  });

  test('a CA certificate without its key: refused, none is made', async () => {
    const world = await empty();
    const { pem } = await makeCa(await makeKeyPem(), Date.now());
    await writeFile(pathsOf(world).caCert, pem);
    expect(await initialize(portsOf(world), NAMES)).toMatchObject({ refusal: { code: 'ca_key_missing' } });
    expect([(await stateOf(world)).names, told(world)]).toEqual([['ca.pem'], []]);
  });
});
