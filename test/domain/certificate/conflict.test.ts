import { describe, expect, test } from 'vitest';
import { recordConflictCommand } from '../../../src/commands/certificate.ts';
import { recordHostFactsCommand } from '../../../src/commands/node.ts';
import {
  CERTIFICATE_LIFETIME_MS,
  enrolled,
  FINGERPRINT,
  MINUTE,
  make,
  SECOND_FINGERPRINT,
  sample,
} from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';

const { boot_ids, addresses } = sample.certificate_conflict_seen.data;
const conflict = { fingerprint: FINGERPRINT, boot_ids, addresses };
const [first = ''] = boot_ids;
const third = '80000000-0000-4000-8000-000000000003';

describe('two hosts use one identity', () => {
  test('seen: certificate_conflict_seen', async () =>
    expect(await given(...enrolled).when(recordConflictCommand, conflict)).toEqual([sample.certificate_conflict_seen]));

  test('repeated, also the other way round: no new event', async () => {
    const known = given(...enrolled, sample.certificate_conflict_seen).after(60 * MINUTE);
    expect(await known.when(recordConflictCommand, conflict)).toEqual([]);
    expect(await known.when(recordConflictCommand, { ...conflict, boot_ids: boot_ids.toReversed() })).toEqual([]);
  });

  test('another pair within ten minutes: no new event', async () =>
    expect(
      await given(...enrolled, sample.certificate_conflict_seen)
        .after(10 * MINUTE - 1)
        .when(recordConflictCommand, { ...conflict, boot_ids: [first, third] }),
    ).toEqual([]));

  test('another pair after ten minutes: certificate_conflict_seen', async () =>
    expect(
      await given(...enrolled, sample.certificate_conflict_seen)
        .after(10 * MINUTE)
        .when(recordConflictCommand, { ...conflict, boot_ids: [first, third] }),
    ).toEqual([make('certificate_conflict_seen', { boot_ids: [first, third] })]));

  test('their facts differ: not learnt, so that the node does not flap', async () => {
    const { node_id: _, ...facts } = sample.node_host_facts_changed.data;
    const report = { fingerprint: FINGERPRINT, facts };
    expect(await given(...enrolled, sample.certificate_conflict_seen).when(recordHostFactsCommand, report)).toEqual([]);
  });

  test('a certificate that is not in force: refused', async () => {
    const unknown = { ...conflict, fingerprint: SECOND_FINGERPRINT };
    expect(await given(...enrolled).when(recordConflictCommand, unknown)).toEqual(refusal('certificate_unknown'));
    expect(
      await given(...enrolled)
        .after(CERTIFICATE_LIFETIME_MS)
        .when(recordConflictCommand, conflict),
    ).toEqual(refusal('certificate_expired'));
  });
});
