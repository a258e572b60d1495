import { describe, expect, test } from 'vitest';
import { HostFiles } from '../../src/rotation/host-files.ts';
import type { RotationOutcome } from '../../src/rotation/outcome.ts';
import { abort, begin, complete } from '../../src/rotation/phases.ts';
import type { RotationPorts } from '../../src/rotation/ports.ts';
import { begun, Cut, copyOf, cutBefore, fresh, pathsOf, portsOf, stateOf, type World } from './support/world.ts';

type Phase = (ports: RotationPorts) => Promise<RotationOutcome>;

const PHASES = {
  begin: (ports: RotationPorts) => begin(ports, 0),
  complete: (ports: RotationPorts) => complete(ports, 0),
  abort,
} as const satisfies Record<string, Phase>;

/** What comes between two of these leaves nothing but temporary files. */
const TELLING = /^(?:append|answer|rename|remove) /;

/** The CAs that the log trusts and of which this host has no key: nobody could ever sign for them again. */
async function lostKeys(world: World): Promise<readonly string[]> {
  const trusted = (await world.log.rows.get('fleet_ca', 'fleet'))?.trusted ?? [];
  const held = await new HostFiles(pathsOf(world)).held(trusted.map(({ pem }) => pem));
  return trusted.flatMap(({ sha256 }) => (held.has(sha256) ? [] : [sha256]));
}

/** Runs a phase to its end, refused or not, and looks before each of its telling steps for the key of every trusted CA. */
async function runWatched(world: World, phase: Phase, what: string): Promise<RotationOutcome> {
  const atStep = async (step: string) => {
    if (TELLING.test(step)) expect(await lostKeys(world), `${what}, before "${step}"`).toEqual([]);
  };
  const outcome = await phase(portsOf(world, { atStep }));
  expect(await lostKeys(world), `${what}, at its end`).toEqual([]);
  return outcome;
}

/** As begun, by a gateway that followed at the very last moment; the process died before the new CA was put into the main files. */
async function switchedLate(): Promise<World> {
  const world = await fresh();
  await cutBefore(world, 'answer of switch_ca_issuer', (at, run) =>
    begin(portsOf(at, { ...run, lateGateway: true }), 0),
  );
  return world;
}

const starts: readonly [string, () => Promise<World>, keyof typeof PHASES][] = [
  ['fresh', fresh, 'begin'],
  ['begun', begun, 'complete'],
  ['begun', begun, 'abort'],
  ['switched late', switchedLate, 'complete'],
];
const crossings = starts.flatMap(([state, prepare, first]) =>
  (['begin', 'complete', 'abort'] as const)
    .filter((second) => second !== first)
    .map((second) => ({ state, prepare, first, second })),
);
test.each(crossings)(
  '$state, $first cut before each step, then $second: the key of a trusted CA never disappears, and a rotation can go through',
  { timeout: 120_000 },
  async ({ prepare, first, second }) => {
    const start = await prepare();
    const trace: string[] = [];
    await PHASES[first](portsOf(await copyOf(start), { trace }));
    const cuts = [...trace.entries()].filter(([, step]) => TELLING.test(step));
    expect(cuts.length).toBeGreaterThan(4);
    for (const [cut, step] of cuts) {
      const what = `${first} cut before "${step}", then ${second}`;
      const world = await copyOf(start);
      await expect(PHASES[first](portsOf(world, { cut }))).rejects.toThrow(Cut);
      await runWatched(world, PHASES[second], what);
      expect(await PHASES.begin(portsOf(world)), `${what}, then begin`).toMatchObject({ kind: 'done' });
      expect(await PHASES.complete(portsOf(world)), `${what}, then complete`).toMatchObject({ kind: 'done' });
      expect(await lostKeys(world), what).toEqual([]);
    }
  },
);

describe('begin is refused', () => {
  const answering = (world: World, execute: RotationPorts['execute']): RotationPorts => ({
    ...portsOf(world),
    execute,
  });
  const refusal = { code: 'ca_rotation_running', details: {} } as const;

  test('nothing of its CA is in the log: what it staged is gone', async () => {
    const world = await fresh();
    const before = await stateOf(world);
    const outcome = await begin(
      answering(world, () => Promise.resolve({ ok: false, refusal })),
      0,
    );
    expect(outcome).toEqual({ kind: 'refused', refusal });
    expect(await stateOf(world)).toEqual(before);
  });

  test('the log trusts its CA all the same: the key stays', async () => {
    const world = await fresh();
    const { execute } = portsOf(world);
    const late: RotationPorts['execute'] = async (...command) => {
      await execute(...command);
      return { ok: false, refusal };
    };
    expect(await begin(answering(world, late), 0)).toEqual({ kind: 'refused', refusal });
    expect(await lostKeys(world)).toEqual([]);
  });
});
