import { describe, expect, test } from 'vitest';
import { initialize } from '../../src/rotation/initialize.ts';
import type { RotationOutcome } from '../../src/rotation/outcome.ts';
import { abort, begin, complete } from '../../src/rotation/phases.ts';
import type { RotationPorts } from '../../src/rotation/ports.ts';
import { begun, Cut, copyOf, empty, fresh, halfBegun, portsOf, stateOf, type World } from './support/world.ts';

const NAMES = { commonName: 'Pushleft gateway', dnsNames: ['localhost'], ipAddresses: [] };

const phases: readonly [string, () => Promise<World>, (ports: RotationPorts) => Promise<RotationOutcome>, number][] = [
  ['init', empty, (ports) => initialize(ports, NAMES), 24],
  ['begin', fresh, (ports) => begin(ports, 0), 37],
  ['complete', begun, (ports) => complete(ports, 0), 17],
  ['abort', halfBegun, abort, 19],
  ['abort after the switch', begun, abort, 19],
];

describe.each(phases)('%s, cut before each step', (name, prepare, phase, expectedSteps) => {
  test('run again: the same final state as without the cut', { timeout: 120_000 }, async () => {
    const start = await prepare();
    const trace: string[] = [];
    const whole = await copyOf(start);
    expect(await phase(portsOf(whole, { trace }))).toMatchObject({ kind: 'done' });
    const expected = await stateOf(whole);
    console.log(`${name}: ${trace.length} steps: ${trace.join(', ')}`);
    expect(trace).toHaveLength(expectedSteps);
    for (const [cut, step] of trace.entries()) {
      const world = await copyOf(start);
      await expect(phase(portsOf(world, { cut }))).rejects.toThrow(Cut);
      expect(await phase(portsOf(world)), `after the cut before "${step}"`).toMatchObject({ kind: 'done' });
      expect(await stateOf(world), `after the cut before "${step}"`).toEqual(expected);
    }
  });

  test('repeated: nothing is changed, no new event', async () => {
    const world = await prepare();
    await phase(portsOf(world));
    const events = world.log.events.length;
    expect(await phase(portsOf(world))).toEqual({ kind: 'done', changed: false });
    expect(world.log.events).toHaveLength(events);
  });
});
