import { describe, expect, test } from 'vitest';
import { CaAudit } from '../../../src/domain/ca/audit.ts';
import type { AnomalyKind, CaAuditReport } from '../../../src/domain/ca/audit-report.ts';
import { unseal } from '../../../src/log/codec.ts';
import { digest, MINUTE, make } from '../../support/events.ts';
import {
  begun,
  CAS,
  certificate,
  completed,
  type Entry,
  enrolledFleet,
  leased,
  NODES,
  operator,
  ROTATIONS,
  rotationHistory,
  sealed,
  serial,
  switched,
} from '../../support/rotation-history.ts';

const { first, second } = CAS;
const ROTATION = ROTATIONS.completed;

function audit(entries: readonly Entry[]): CaAuditReport {
  const caAudit = new CaAudit();
  for (const { position, body } of sealed(entries)) caAudit.see(unseal(position, body));
  return caAudit.report();
}

/** The anomalies of a fleet that goes through more: kind, node, certificate. */
function anomalies(...entries: readonly Entry[]): [AnomalyKind, string | null, string | null][] {
  const { rotations, outside } = audit([...enrolledFleet, ...entries]);
  const all = [...rotations.flatMap((rotation) => rotation.anomalies), ...outside.anomalies];
  return all.map(({ kind, name, certificate_id }) => [kind, name, certificate_id]);
}

const begin = begun(60, ROTATION, first, second);
const issuing = [begin, switched(62, ROTATION, second)];
const everyoneMoves = [
  ...certificate(5, NODES.prompt, { minute: 65, issuer: second, replaces: 1 }),
  ...certificate(6, NODES.repeating, { minute: 65, issuer: second, replaces: 2 }),
  ...certificate(7, NODES.late, { minute: 65, issuer: second, replaces: 3 }),
  ...certificate(8, NODES.off, { minute: 65, issuer: second, replaces: 4 }),
];
const whole = [...issuing, ...everyoneMoves, completed(90, ROTATION, first, second, [])];

describe('a rotation in which every node moves', () => {
  test('completed: nothing strange, each node and its time in the overlap', () => {
    const { rotations, outside } = audit([...enrolledFleet, ...whole]);
    const [rotation] = rotations;
    expect(rotation).toMatchObject({ status: 'completed', anomalies: [], refused: [] });
    expect(
      rotation?.nodes.map(({ name, overlap_ms, certificates }) => [name, overlap_ms, certificates.length]),
    ).toEqual([
      ['app-one', 6 * MINUTE, 2],
      ['app-two', 6 * MINUTE, 2],
      ['build-one', 6 * MINUTE, 2],
      ['db-one', 6 * MINUTE, 2],
    ]);
    expect(outside).toEqual({ refused: [], anomalies: [] });
  });

  test('renewals of the new CA long after it: none of its business', () => {
    const later = certificate(9, NODES.prompt, { minute: 900, issuer: second, replaces: 5 });
    const report = audit([...enrolledFleet, ...whole, ...later]);
    expect(report.rotations[0]?.nodes[0]?.certificates.map((c) => c.certificate_id)).toEqual([serial(1), serial(5)]);
  });

  test('a node that enrolled meanwhile: its overlap begins with its own first certificate', () => {
    const newcomer = '55555555-0000-4000-8000-000000000005';
    const entries = [...issuing, ...certificate(9, newcomer, { minute: 70, issuer: second })];
    const { rotations } = audit([...enrolledFleet, ...entries]);
    expect(rotations[0]?.nodes.find((node) => node.node_id === newcomer)).toMatchObject({
      name: null,
      overlap_ms: MINUTE,
    });
  });
});

describe('anomalies', () => {
  test('a certificate of an unknown CA: issued by neither', () => {
    const stray = certificate(9, NODES.prompt, { minute: 70, issuer: digest('e11'), replaces: 1 });
    expect(anomalies(...issuing, ...stray)).toEqual([['issued_by_neither_ca', 'app-one', serial(9)]]);
    expect(anomalies(...stray)).toEqual([['issued_by_neither_ca', 'app-one', serial(9)]]);
  });

  test('the new CA before it might issue', () => {
    const early = certificate(9, NODES.prompt, { minute: 61, issuer: second, replaces: 1 });
    expect(anomalies(begin, ...early)).toEqual([['issued_by_new_ca_before_switch', 'app-one', serial(9)]]);
  });

  test('the old CA after the new one has taken over', () => {
    const old = certificate(9, NODES.prompt, { minute: 70, issuer: first, replaces: 1 });
    expect(anomalies(...issuing, ...old)).toEqual([['issued_by_old_ca_after_switch', 'app-one', serial(9)]]);
  });

  test('the old CA after completion', () => {
    const old = certificate(9, NODES.prompt, { minute: 95, issuer: first, replaces: 5 });
    expect(anomalies(...whole, ...old)).toEqual([['issued_by_old_ca_after_completion', 'app-one', serial(9)]]);
  });

  test('a CA whose rotation was aborted', () => {
    const data = { rotation_id: ROTATION, ca_sha256: second, restored_ca_sha256: first };
    const aborted = operator(65, make('ca_rotation_aborted', data));
    const stray = certificate(9, NODES.prompt, { minute: 70, issuer: second, replaces: 1 });
    expect(anomalies(begin, aborted, ...stray)).toEqual([['issued_by_aborted_ca', 'app-one', serial(9)]]);
  });

  test('authorised and never issued', () => {
    const lost = certificate(9, NODES.prompt, { minute: 64, issuer: second, replaces: 1, until: 'authorized' });
    expect(anomalies(...issuing, ...lost)).toEqual([['authorized_never_issued', 'app-one', serial(9)]]);
  });

  test('first used after its revocation', () => {
    const revoked = make('certificates_revoked', { node_id: NODES.prompt, certificate_ids: [serial(9)] });
    const [authorized, issued, used] = certificate(9, NODES.prompt, { minute: 64, issuer: second, cause: 'renewal' });
    const entries = [authorized, issued, operator(64, revoked), used].filter((entry) => entry !== undefined);
    expect(anomalies(...issuing, ...entries)).toEqual([['used_after_revocation', 'app-one', serial(9)]]);
  });

  test('an agent that acts when all its certificates are revoked: told once', () => {
    const revoked = make('certificates_revoked', { node_id: NODES.prompt, certificate_ids: [serial(1)] });
    const entries = [
      leased(63, NODES.prompt),
      operator(64, revoked),
      leased(65, NODES.prompt),
      leased(66, NODES.prompt),
    ];
    expect(anomalies(...issuing, ...entries)).toEqual([['used_after_revocation', 'app-one', null]]);
  });

  test('a node that had not moved at the completion: named, a retired one not', () => {
    const retired = operator(80, make('node_retired', { node_id: NODES.off }));
    const moves = everyoneMoves.slice(0, 8);
    const end = completed(90, ROTATION, first, second, [serial(3), serial(4)]);
    expect(anomalies(...issuing, ...moves, retired, end)).toEqual([['node_never_moved', 'build-one', null]]);
  });

  test('the issuer switched by a rotation that never began', () => {
    expect(anomalies(switched(62, ROTATION, second))).toEqual([['switched_without_begin', null, null]]);
  });

  test('an end without a beginning', () => {
    expect(anomalies(completed(62, ROTATION, first, second, []))).toEqual([['ended_without_begin', null, null]]);
  });

  test('completed although the new CA never issued', () => {
    const kinds = anomalies(begin, completed(62, ROTATION, first, second, [])).map(([kind]) => kind);
    expect(kinds[0]).toBe('completed_without_switch');
  });

  test('begun while another one was running', () => {
    expect(anomalies(begin, begun(61, ROTATIONS.aborted, first, CAS.aborted))).toEqual([
      ['begun_while_running', null, null],
    ]);
  });

  test('two hosts with one identity', () => {
    const data = { node_id: NODES.prompt, certificate_id: serial(1) };
    const seen = operator(64, make('certificate_conflict_seen', data));
    expect(anomalies(...issuing, seen)).toEqual([['identity_conflict', 'app-one', serial(1)]]);
  });
});

describe('refused attempts', () => {
  const refused = operator(
    50,
    make('ca_rotation_refused', {
      rotation_id: null,
      action: 'begin',
      reason: 'ca_files_differ',
      blocking_node_ids: [],
      blocking_reasons: [],
    }),
  );

  test('to begin: told with the rotation that began at last', () => {
    const { rotations, outside } = audit([...enrolledFleet, refused, ...issuing]);
    expect(rotations[0]?.refused.map(({ reason }) => reason)).toEqual(['ca_files_differ']);
    expect(rotations[0]?.anomalies.map(({ kind }) => kind)).toEqual(['attempt_refused']);
    expect(outside).toEqual({ refused: [], anomalies: [] });
  });

  test('to begin, and nothing began: told outside of rotations', () => {
    const { rotations, outside } = audit([...enrolledFleet, refused]);
    expect(rotations).toEqual([]);
    expect(outside.refused).toHaveLength(1);
    expect(outside.anomalies.map(({ kind }) => kind)).toEqual(['attempt_refused']);
  });
});

describe('a certificate that was authorised and never issued', () => {
  const [authorized] = certificate(5, NODES.prompt, { minute: 40, issuer: first, replaces: 1 });

  test('before any rotation: told outside of rotations', () =>
    expect(authorized && anomalies(authorized)).toEqual([['authorized_never_issued', 'app-one', serial(5)]]));

  test('in force when a rotation begins: told once, with it', () => {
    const { rotations, outside } = audit([...enrolledFleet, ...(authorized ? [authorized] : []), ...issuing]);
    expect([rotations[0]?.anomalies.map(({ kind }) => kind), outside.anomalies]).toEqual([
      ['authorized_never_issued'],
      [],
    ]);
  });

  test('in force when a rotation begins that is aborted, which tells of no such node: told outside of rotations', () => {
    const end = { rotation_id: ROTATION, ca_sha256: second, restored_ca_sha256: first };
    const aborted = [begin, operator(65, make('ca_rotation_aborted', end))];
    const { rotations, outside } = audit([...enrolledFleet, ...(authorized ? [authorized] : []), ...aborted]);
    expect([rotations[0]?.anomalies, outside.anomalies.map(({ kind }) => kind)]).toEqual([
      [],
      ['authorized_never_issued'],
    ]);
  });
});

test('an aborted and a completed rotation: each counts its own', () => {
  const { rotations } = audit(rotationHistory);
  expect(rotations.map(({ status, refused, nodes }) => [status, refused.length, nodes.length])).toEqual([
    ['aborted', 1, 0],
    ['completed', 2, 4],
  ]);
});
