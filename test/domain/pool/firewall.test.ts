import { describe, expect, test } from 'vitest';
import { recordFirewallCommand } from '../../../src/commands/pool.ts';
import { digest, make, sample } from '../../support/events.ts';
import { given } from '../../support/given.ts';

const converged = sample.pool_firewall_converged;

describe("a pool's firewall was converged", () => {
  test('first time: pool_firewall_converged', async () =>
    expect(await given().when(recordFirewallCommand, converged.data)).toEqual([converged]));

  test('repeated: no new event', async () =>
    expect(await given(converged).when(recordFirewallCommand, converged.data)).toEqual([]));

  test('other rules: pool_firewall_converged', async () => {
    const changed = make('pool_firewall_converged', { rules_sha256: digest('f13e') });
    expect(await given(converged).when(recordFirewallCommand, changed.data)).toEqual([changed]);
  });

  test('the firewall was made anew: pool_firewall_converged', async () => {
    const changed = make('pool_firewall_converged', { firewall_id: 100 });
    expect(await given(converged).when(recordFirewallCommand, changed.data)).toEqual([changed]);
  });

  test('same rules in another pool: pool_firewall_converged', async () => {
    const other = make('pool_firewall_converged', { pool: 'build' });
    expect(await given(converged).when(recordFirewallCommand, other.data)).toEqual([other]);
  });
});
