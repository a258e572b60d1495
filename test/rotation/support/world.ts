import { cp, mkdir, readdir, readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect } from 'vitest';
import type { NewEvent } from '../../../src/domain/event/catalogue.ts';
import { CA_STREAM } from '../../../src/domain/stream.ts';
import { ensureDevelopmentPki } from '../../../src/pki/development-ca.ts';
import type { PkiPaths } from '../../../src/pki/files.ts';
import { loadPki } from '../../../src/pki/pki-set.ts';
import type { GatewayPki } from '../../../src/read/gateway-pki.ts';
import { HostFiles } from '../../../src/rotation/host-files.ts';
import { initialize } from '../../../src/rotation/initialize.ts';
import { begin } from '../../../src/rotation/phases.ts';
import type { RotationPorts } from '../../../src/rotation/ports.ts';
import { START } from '../../support/events.ts';
import { MemoryLog } from '../../support/memory-log.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

/** The process dies here: nothing that it would have done afterwards is done. */
export class Cut extends Error {}

export interface World {
  readonly folder: string;
  readonly log: MemoryLog;
}

const cleanup = new AsyncDisposableStack();
let root: string;
let worlds = 0;
beforeAll(async () => {
  ({ path: root } = cleanup.use(await temporaryDirectory()));
});
afterAll(() => cleanup.disposeAsync());

export function pathsOf({ folder }: World): PkiPaths {
  const at = (name: string) => `${folder}/${name}`;
  return {
    caKey: at('ca.key'),
    caCert: at('ca.pem'),
    trustBundle: at('trust-bundle.pem'),
    gatewayKey: at('gateway.key'),
    gatewayCert: at('gateway.pem'),
  };
}

/** How a phase runs, and what of it is told. */
export interface Run {
  /** Is told every step. */
  readonly trace?: string[];
  /** The process dies before the step with this number. */
  readonly cut?: number;
  /** Called before every step: what holds there holds after a crash at any point. */
  readonly atStep?: (step: string) => Promise<void>;
  /** The gateway reads its files only after the wait for it has ended. */
  readonly lateGateway?: boolean;
}

/** What a phase runs on. The gateway trusts what lies in its files. */
export function portsOf(
  world: World,
  { trace = [], cut = Number.POSITIVE_INFINITY, atStep, lateGateway = false }: Run = {},
): RotationPorts {
  let dead = false;
  const before = async (step: string) => {
    if (dead || trace.length >= cut) {
      dead = true;
      throw new Cut(step);
    }
    trace.push(step);
    await atStep?.(step);
  };
  const paths = pathsOf(world);
  const uuids = [1, 2, 3].map((n) => `70000000-0000-4000-8000-00000000000${n}`);
  return {
    files: new HostFiles(paths, before),
    nowMs: () => START,
    pause: () => Promise.resolve(),
    async execute(definition, command) {
      await before(`append by ${definition.name}`);
      const decision = await world.log.decide(definition, command, { now: START, at: START });
      await before(`answer of ${definition.name}`);
      if ('refusal' in decision) return { ok: false, refusal: decision.refusal };
      return {
        ok: true,
        events: decision.events.map(({ event }, i) => ({ position: i, type: event.type })),
        reply: decision.reply,
      };
    },
    readCa: () => world.log.rows.get('fleet_ca', 'fleet'),
    lastRotation: () => Promise.resolve([...world.log.rows.rows('ca_rotations').values()].at(-1)),
    async liveGateways() {
      const loaded = await loadPki(paths, Date.now());
      if (!loaded.ok || lateGateway) return [{ program: 'gateway@test:1', pki: undefined }];
      const { trustedCaSha256s, serving } = loaded.pki;
      return [{ program: 'gateway@test:1', pki: saying(trustedCaSha256s, serving.issuerCaSha256) }];
    },
    say: () => undefined,
    uuid: () => uuids[world.log.rows.rows('ca_rotations').size] ?? '',
  };
}

/** What a gateway says of its files. */
export function saying(trusted: readonly string[], servingIssuer: string): GatewayPki {
  return {
    trusted_ca_sha256s: [...trusted],
    issuer_ca_sha256: servingIssuer,
    previous_issuer_ca_sha256: null,
    serving: { fingerprint_sha256: servingIssuer, issuer_ca_sha256: servingIssuer, not_before: 0, not_after: 0 },
    loaded_at: START,
    error: null,
  };
}

/** A host with a fleet's first CA, as the log knows it. */
export async function fresh(): Promise<World> {
  const world = { folder: `${root}/${(worlds += 1)}`, log: new MemoryLog() };
  await ensureDevelopmentPki(world.folder, { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'], now: Date.now() });
  await initialize(portsOf(world));
  return world;
}

/** A host with nothing, and a log that knows nothing. */
export async function empty(): Promise<World> {
  const world = { folder: `${root}/${(worlds += 1)}`, log: new MemoryLog() };
  await mkdir(world.folder);
  return world;
}

/** The same files and the same log once more, so that each cut begins where the phase begins. */
export async function copyOf(world: World): Promise<World> {
  const copy = { folder: `${root}/${(worlds += 1)}`, log: new MemoryLog() };
  await cp(world.folder, copy.folder, { recursive: true });
  copy.log.record(
    world.log.events.map((event): NewEvent => ({ stream: CA_STREAM, event })),
    START,
  );
  return copy;
}

/** Names of the files, the kinds of events and who is who, with CAs named by their order. What a cut write leaves counts as well: it may be a key. */
export async function stateOf(world: World) {
  const paths = pathsOf(world);
  const ca = await world.log.rows.get('fleet_ca', 'fleet');
  const loaded = await loadPki(paths, Date.now());
  const first = world.log.events.flatMap((event) => (event.type === 'ca_initialized' ? event.data.ca_sha256 : []))[0];
  const order = (sha256: string | null | undefined) =>
    sha256 === null || sha256 === undefined ? null : sha256 === first ? 'first' : 'second';
  const names = (await readdir(world.folder)).toSorted();
  return {
    names,
    rotating: ca?.rotation_id !== null,
    issuing: order(ca?.issuing_ca_sha256),
    trusted: ca?.trusted.map(({ sha256 }) => order(sha256)),
    files: loaded.ok
      ? {
          issuer: order(loaded.pki.signer.caSha256),
          previous: order(loaded.pki.previousSigner?.caSha256),
          trusted: loaded.pki.trustedCaSha256s.map(order),
          serving: order(loaded.pki.serving.issuerCaSha256),
        }
      : loaded.problem.code,
    keyIsPrivate: names.includes('ca.key') && (await readFile(paths.caKey, 'utf8')).includes('PRIVATE KEY'),
  };
}

export async function begun(): Promise<World> {
  const world = await fresh();
  await begin(portsOf(world), 0);
  return world;
}

/** As begun, cut before the new CA issues: what can still be taken back. */
export async function halfBegun(): Promise<World> {
  const world = await fresh();
  await cutBefore(world, 'append by switch_ca_issuer', (at, run) => begin(portsOf(at, run), 0));
  return world;
}

/** Runs a phase until it dies before a step, which a run on a copy of the world finds. */
export async function cutBefore(
  world: World,
  step: string,
  phase: (world: World, run: Run) => Promise<unknown>,
): Promise<void> {
  const trace: string[] = [];
  await phase(await copyOf(world), { trace });
  const cut = trace.indexOf(step);
  expect(cut).toBeGreaterThan(0);
  await expect(phase(world, { cut })).rejects.toThrow(Cut);
}
