import { describe, expect, test } from 'vitest';
import { convergeFirewall } from '../../src/hetzner/converge-firewall.ts';
import { stubWorld } from './stub-world.ts';

const CIDRS = ['203.0.113.0/24', '2001:db8::/32'];

describe('convergeFirewall', () => {
  test('none there: created with its labels and exact rules', async () => {
    await using world = await stubWorld();
    const outcome = await convergeFirewall(world.api, 'build', CIDRS, world.waiting);
    expect(outcome).toMatchObject({ ok: true, value: { change: 'created' } });
    expect(await world.api.findFirewall('pushleft-build')).toMatchObject({
      labels: { 'pushleft.org': 'platform', 'pushleft.pool': 'build' },
      rules: [
        {
          direction: 'in',
          protocol: 'tcp',
          port: '22',
          source_ips: expect.toSatisfy((ips: string[]) => ips.toSorted().join() === CIDRS.toSorted().join()),
        },
      ],
    });
  });

  test('the same in another notation: unchanged, nothing is written', async () => {
    await using world = await stubWorld();
    const first = await convergeFirewall(world.api, 'build', CIDRS, world.waiting);
    const before = world.writes();
    const again = await convergeFirewall(world.api, 'build', ['2001:DB8:0::/32', '203.0.113.0/24'], world.waiting);
    expect(again).toEqual({ ok: true, value: { ...(first.ok && first.value), change: 'unchanged' } });
    expect(world.writes()).toEqual(before);
  });

  test('an operator range more: updated by one set_rules, digest differs', async () => {
    await using world = await stubWorld();
    const first = await convergeFirewall(world.api, 'build', ['203.0.113.0/24'], world.waiting);
    const next = await convergeFirewall(world.api, 'build', CIDRS, world.waiting);
    expect(next).toMatchObject({ ok: true, value: { change: 'updated' } });
    expect(next.ok && first.ok && next.value.rulesSha256 !== first.value.rulesSha256).toBe(true);
    expect(world.writes().filter((write) => write.includes('set_rules'))).toHaveLength(1);
    expect(await convergeFirewall(world.api, 'build', CIDRS, world.waiting)).toMatchObject({
      value: { change: 'unchanged' },
    });
  });

  test('the name held without our labels: refused, left as it is', async () => {
    await using world = await stubWorld();
    await world.api.createFirewall({ name: 'pushleft-build', labels: { owner: 'anna' }, rules: [] });
    const outcome = await convergeFirewall(world.api, 'build', CIDRS, world.waiting);
    expect(outcome).toMatchObject({ ok: false, refusal: { code: 'firewall_name_taken' } });
    expect(await world.api.findFirewall('pushleft-build')).toMatchObject({ rules: [] });
  });

  test('a create whose answer is lost: found again, one firewall', async () => {
    await using world = await stubWorld();
    world.stub.setFaults([
      { match: { method: 'POST', path: '/v1/firewalls' }, nth: 1, fault: { kind: 'lose_response' } },
    ]);
    expect(await convergeFirewall(world.api, 'build', CIDRS, world.waiting)).toMatchObject({
      ok: true,
      value: { change: 'created' },
    });
    expect(world.stub.state().firewalls.filter(({ name }) => name === 'pushleft-build')).toHaveLength(1);
  });

  test('two operators at once: one creates, both agree', async () => {
    await using world = await stubWorld();
    const outcomes = await Promise.all(
      [1, 2, 3].map(() => convergeFirewall(world.api, 'database', CIDRS, world.waiting)),
    );
    expect(new Set(outcomes.map((outcome) => outcome.ok && outcome.value.firewallId)).size).toBe(1);
    expect(outcomes.filter((outcome) => outcome.ok && outcome.value.change === 'created')).toHaveLength(1);
  });

  test('a bad range: refused before any call', async () => {
    await using world = await stubWorld();
    const before = world.stub.requests().length;
    expect(await convergeFirewall(world.api, 'build', ['203.0.113.5/24'], world.waiting)).toMatchObject({
      ok: false,
      refusal: { code: 'cidr_invalid' },
    });
    expect(world.stub.requests()).toHaveLength(before);
  });
});
