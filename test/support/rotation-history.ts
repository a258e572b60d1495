import type { FleetEvent } from '../../src/domain/event/catalogue.ts';
import type { Actor } from '../../src/domain/event/recorded.ts';
import { CA_STREAM, jobStream, nodeStream } from '../../src/domain/stream.ts';
import { eventId } from '../../src/log/chain.ts';
import { seal } from '../../src/log/codec.ts';
import { toExportLine } from '../../src/log/export.ts';
import { type ClaimedRow, GENESIS } from '../../src/log/prove.ts';
import { CERTIFICATE_LIFETIME_MS, digest, MINUTE, make, pem, START } from './events.ts';
import { METADATA } from './given.ts';

/** The CAs of the history: the first one, the one whose rotation is aborted, the one that takes over. */
export const CAS = { first: digest('ca1'), aborted: digest('ca2'), second: digest('ca3') } as const;
/** Its two rotations. */
export const ROTATIONS = {
  aborted: 'aaaaaaaa-0000-4000-8000-000000000001',
  completed: 'cccccccc-0000-4000-8000-000000000002',
} as const;
/** Its nodes: two that move at once, one that is late, one that was off until its certificate had expired. */
export const NODES = {
  prompt: '11111111-0000-4000-8000-000000000001',
  repeating: '22222222-0000-4000-8000-000000000002',
  late: '33333333-0000-4000-8000-000000000003',
  off: '44444444-0000-4000-8000-000000000004',
} as const;

const OPERATOR: Actor = {
  kind: 'operator',
  id: 'ada@ops',
  database_user: 'ada_login',
  client_address: '203.0.113.9',
};
const OTHER_OPERATOR: Actor = { ...OPERATOR, id: 'ada@laptop', database_user: 'bob_login', client_address: null };
const GATEWAY: Actor = { kind: 'gateway', id: 'gateway-1', database_user: 'gateway_login', client_address: '10.0.0.2' };
const agent = (nodeId: string): Actor => ({ ...GATEWAY, kind: 'agent', id: nodeId });

/** An event of a history: who caused it, and how many minutes after {@link START}. */
export interface Entry {
  readonly minute: number;
  readonly event: FleetEvent;
  readonly actor: Actor;
}

/** A certificate's serial number: `serial(3)` is 0303…. */
export function serial(number: number): string {
  return number.toString(16).padStart(2, '0').repeat(16);
}

/** Entries of one certificate, as far as `until` goes. A renewal names what it replaces, and its first use revokes that, or `revokes`. */
export function certificate(
  number: number,
  nodeId: string,
  {
    minute,
    issuer,
    replaces,
    revokes = replaces === undefined ? [] : [replaces],
    until = 'used',
    cause = replaces === undefined ? 'enrollment' : 'renewal',
    lifetimeMs = CERTIFICATE_LIFETIME_MS,
  }: {
    minute: number;
    issuer: string;
    replaces?: number;
    revokes?: readonly number[];
    until?: 'authorized' | 'issued' | 'used';
    cause?: 'enrollment' | 'renewal' | 'reenrollment';
    lifetimeMs?: number;
  },
): Entry[] {
  const certificate_id = serial(number);
  const fingerprint = digest(`f${number.toString(16)}`);
  const notBefore = START + minute * MINUTE;
  const secret = cause === 'renewal' ? null : digest(`5ec${number.toString(16)}`);
  const actor = cause === 'renewal' ? agent(nodeId) : GATEWAY;
  const authorized = make('certificate_authorized', {
    certificate_id,
    node_id: nodeId,
    cause,
    secret_sha256: secret,
    secret_expires_at: secret === null ? null : notBefore + 15 * MINUTE,
    issuer_ca_sha256: issuer,
    not_before: notBefore,
    not_after: notBefore + lifetimeMs,
    replaces_id: replaces === undefined ? null : serial(replaces),
  });
  const issued = make('certificate_issued', {
    certificate_id,
    node_id: nodeId,
    fingerprint,
    certificate_pem: pem('MIIB'),
  });
  const used = make('certificate_first_used', { certificate_id, node_id: nodeId, fingerprint });
  const entries: Entry[] = [{ minute, event: authorized, actor }];
  if (until !== 'authorized') entries.push({ minute, event: issued, actor });
  if (until === 'used') entries.push({ minute: minute + 1, event: used, actor: agent(nodeId) });
  if (until === 'used' && revokes.length > 0) {
    const certificate_ids = revokes.map(serial);
    const revoked = make('certificates_revoked', { node_id: nodeId, certificate_ids, reason: 'superseded' });
    entries.push({ minute: minute + 1, event: revoked, actor: agent(nodeId) });
  }
  return entries;
}

/** Something that an operator did. */
export function operator(minute: number, event: FleetEvent, actor: Actor = OPERATOR): Entry {
  return { minute, event, actor };
}

/** Something that an agent did with whatever certificate it has. */
export function leased(minute: number, nodeId: string): Entry {
  return { minute, event: make('job_leased', { node_id: nodeId }), actor: agent(nodeId) };
}

const node = (minute: number, nodeId: string, name: string) =>
  operator(minute, make('node_provisioning_requested', { node_id: nodeId, name }));

/** Four enrolled nodes under the first CA. */
export const enrolledFleet: readonly Entry[] = [
  operator(0, make('ca_initialized', { ca_sha256: CAS.first })),
  node(0, NODES.prompt, 'app-one'),
  node(0, NODES.repeating, 'app-two'),
  node(0, NODES.late, 'build-one'),
  node(0, NODES.off, 'db-one'),
  ...certificate(1, NODES.prompt, { minute: 10, issuer: CAS.first }),
  ...certificate(2, NODES.repeating, { minute: 12, issuer: CAS.first }),
  ...certificate(3, NODES.late, { minute: 14, issuer: CAS.first }),
  ...certificate(4, NODES.off, { minute: 16, issuer: CAS.first, lifetimeMs: 230 * MINUTE }),
];

/** The beginning of a rotation. */
export function begun(minute: number, rotation_id: string, from: string, to: string): Entry {
  return operator(minute, make('ca_rotation_begun', { rotation_id, previous_ca_sha256: from, ca_sha256: to }));
}

/** The new CA takes over. */
export function switched(minute: number, rotation_id: string, to: string): Entry {
  return operator(
    minute,
    make('ca_issuer_switched', { rotation_id, ca_sha256: to, gateways: ['gateway@a:1', 'gateway@b:2'] }),
  );
}

/** The end of a rotation. */
export function completed(
  minute: number,
  rotation_id: string,
  from: string,
  to: string,
  revoked: readonly string[],
): Entry {
  const data = { rotation_id, previous_ca_sha256: from, ca_sha256: to, revoked_certificate_ids: [...revoked] };
  return operator(minute, make('ca_rotation_completed', data));
}

/** One aborted attempt, one refused complete, one late node, one that was off: what the golden report tells of. */
export const rotationHistory: readonly Entry[] = [
  ...enrolledFleet,
  begun(60, ROTATIONS.aborted, CAS.first, CAS.aborted),
  operator(
    61,
    make('ca_rotation_refused', {
      rotation_id: ROTATIONS.aborted,
      action: 'issue',
      reason: 'ca_not_trusted_everywhere',
      blocking_node_ids: [],
      blocking_reasons: [],
      blocking_gateways: ['gateway@b:2'],
    }),
  ),
  operator(
    65,
    make('ca_rotation_aborted', {
      rotation_id: ROTATIONS.aborted,
      ca_sha256: CAS.aborted,
      restored_ca_sha256: CAS.first,
    }),
  ),
  operator(
    90,
    make('ca_rotation_refused', {
      rotation_id: null,
      action: 'begin',
      reason: 'ca_files_differ',
      blocking_node_ids: [],
      blocking_reasons: [],
      blocking_gateways: [],
    }),
    OTHER_OPERATOR,
  ),
  begun(120, ROTATIONS.completed, CAS.first, CAS.second),
  switched(122, ROTATIONS.completed, CAS.second),
  ...certificate(5, NODES.prompt, { minute: 125, issuer: CAS.second, replaces: 1 }),
  ...certificate(6, NODES.repeating, { minute: 130, issuer: CAS.second, replaces: 2, until: 'authorized' }),
  ...certificate(7, NODES.repeating, { minute: 131, issuer: CAS.second, replaces: 2, revokes: [2, 6] }),
  operator(
    180,
    make('ca_rotation_refused', {
      rotation_id: ROTATIONS.completed,
      action: 'complete',
      reason: 'ca_rotation_blocked',
      blocking_node_ids: [NODES.late, NODES.off],
      blocking_reasons: ['never_renewed', 'never_renewed'],
      blocking_gateways: [],
    }),
  ),
  ...certificate(8, NODES.late, { minute: 240, issuer: CAS.second, replaces: 3 }),
  completed(270, ROTATIONS.completed, CAS.first, CAS.second, [serial(4)]),
  operator(271, make('gateway_certificate_issued', { issuer_ca_sha256: CAS.second })),
  ...certificate(9, NODES.off, { minute: 300, issuer: CAS.second, cause: 'reenrollment' }),
];

/** Seals a history with the real codec: what an exported log would hold. */
export function sealed(entries: readonly Entry[]): ClaimedRow[] {
  const revisions = new Map<string, number>();
  let head = { ...GENESIS, at: 0 };
  return entries.map(({ minute, event, actor }) => {
    const stream = streamOf(event);
    const metadata = { ...METADATA, actor };
    const [row] = seal(head, [{ stream, event }], metadata, START + minute * MINUTE);
    if (row === undefined) throw new Error('nothing was sealed');
    const revision = (revisions.get(stream) ?? 0) + 1;
    revisions.set(stream, revision);
    const { position, at } = row.event;
    head = { position, hash: row.hash, at };
    return { position, stream, revision, hash: row.hash, id: eventId(row.hash), body: row.body };
  });
}

/** The same as an exported file. */
export function exported(rows: readonly ClaimedRow[]): string {
  return rows.map((row, i) => `${toExportLine(row, i === 0 ? GENESIS.hash : undefined)}\n`).join('');
}

function streamOf({ type, data }: FleetEvent): string {
  if (type.startsWith('job_') && 'job_id' in data && data.job_id !== null) return jobStream(data.job_id);
  return 'node_id' in data && data.node_id !== null ? nodeStream(data.node_id) : CA_STREAM;
}
