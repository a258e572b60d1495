import { lifetimeLevel } from '../../src/pki/lifetime.ts';
import type { CaStatus, GatewayStatus } from '../../src/read/ca-status.ts';
import { duration, isoTime, moment } from './format.ts';
import { tableLines } from './table.ts';

const short = (sha256: string) => `${sha256.slice(0, 16)}…`;

/** Lines for people: the CAs, the gateways, and who keeps a rotation from being completed. */
export function caStatusLines({ ca, nowMs, moved, nodes, blockers, gateways }: CaStatus): string[] {
  if (ca === undefined) return ["the log does not know the fleet's CA: run `pushleft-controller fleet ca init`"];
  const rotating = ca.rotation_id !== null;
  const issuing = ca.issuing_ca_sha256 === ca.next_ca_sha256 ? 'the new CA issues' : 'the new CA does not issue yet';
  const cas = ca.trusted.map(({ sha256, not_after }) => {
    const part = sha256 === ca.issuing_ca_sha256 ? 'issues' : 'trusted';
    return `CA ${short(sha256)}  ${part}, ends ${moment(not_after)}`;
  });
  return [
    ...cas,
    rotating ? `rotation ${ca.rotation_id}: ${issuing}` : 'no rotation is under way',
    `nodes on the CA that stays: ${moved} of ${nodes}`,
    ...(rotating ? blockers.map((b) => `  ${b.name}: ${b.reason}${untilText(b.until, nowMs)}`) : []),
    '',
    ...tableLines(gateways, [
      { heading: 'GATEWAY', value: ({ program }) => program },
      { heading: 'TRUSTS', value: ({ pki }) => String(pki?.trusted_ca_sha256s.length ?? '?') },
      { heading: 'SERVES', value: ({ pki }) => (pki === undefined ? '?' : short(pki.serving.issuer_ca_sha256)) },
      { heading: 'ENDS', value: (gateway) => servingEnd(gateway, nowMs) },
      { heading: 'PROBLEM', value: problemOf },
    ]),
  ];
}

function untilText(until: number | null, nowMs: number): string {
  return until === null ? '' : `, for ${duration(until - nowMs)} more at most`;
}

function servingEnd({ pki }: GatewayStatus, nowMs: number): string {
  if (pki === undefined) return '?';
  const { not_before: notBeforeMs, not_after: notAfterMs } = pki.serving;
  const level = lifetimeLevel({ notBeforeMs, notAfterMs }, nowMs);
  return level === 'fresh'
    ? duration(notAfterMs - nowMs)
    : `${duration(notAfterMs - nowMs)} (${level}: fleet ca reissue-gateway)`;
}

function problemOf({ pki, missing }: GatewayStatus): string {
  if (pki?.error !== null && pki?.error !== undefined) return pki.error.message;
  return missing.length > 0 ? `does not trust ${missing.map(short).join(', ')}: run fleet ca sync on its host` : '-';
}

/** The same for --json. */
export function caStatusJson({ ca, moved, nodes, blockers, gateways }: CaStatus) {
  return {
    ca: ca === undefined ? null : { ...ca, initialized_at: isoTime(ca.initialized_at) },
    nodes,
    nodes_moved: moved,
    blockers: blockers.map(({ until, ...blocker }) => ({ ...blocker, until: until === null ? null : isoTime(until) })),
    gateways: gateways.map(({ program, pki, missing }) => ({ program, pki: pki ?? null, missing_ca_sha256s: missing })),
  };
}
