import { describe, expect, test } from 'vitest';
import { recordHostFactsCommand } from '../../../src/commands/node.ts';
import {
  CERTIFICATE_LIFETIME_MS,
  enrolled,
  FINGERPRINT,
  make,
  SECOND_FINGERPRINT,
  sample,
} from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';

const { node_id: _, ...facts } = sample.node_host_facts_changed.data;
const report = { fingerprint: FINGERPRINT, facts };

describe('a host reports its facts', () => {
  test('first report: node_host_facts_changed', async () =>
    expect(await given(...enrolled).when(recordHostFactsCommand, report)).toEqual([sample.node_host_facts_changed]));

  test('repeated: no new event', async () =>
    expect(await given(...enrolled, sample.node_host_facts_changed).when(recordHostFactsCommand, report)).toEqual([]));

  test.each([
    { cpu_count: 8 },
    { memory_mb: 15_500 },
    { kernel: '6.12.63+deb13-amd64' },
    { docker_version: null },
    { agent_version: '0.1.1' },
    { bridge_netfilter: null },
  ])('now with %o: node_host_facts_changed', async (difference) =>
    expect(
      await given(...enrolled, sample.node_host_facts_changed).when(recordHostFactsCommand, {
        ...report,
        facts: { ...facts, ...difference },
      }),
    ).toEqual([make('node_host_facts_changed', difference)]),
  );

  test('certificate unknown: refused', async () =>
    expect(
      await given(...enrolled).when(recordHostFactsCommand, { ...report, fingerprint: SECOND_FINGERPRINT }),
    ).toEqual(refusal('certificate_unknown')));

  test('certificate expired: refused', async () =>
    expect(
      await given(...enrolled)
        .after(CERTIFICATE_LIFETIME_MS)
        .when(recordHostFactsCommand, report),
    ).toEqual(refusal('certificate_expired')));

  test('certificate revoked: refused', async () =>
    expect(await given(...enrolled, sample.certificates_revoked).when(recordHostFactsCommand, report)).toEqual(
      refusal('certificate_unknown'),
    ));
});
