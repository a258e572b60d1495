import type { Blocker } from '../../src/domain/ca/blockers.ts';
import type { BlockingReason } from '../../src/domain/ca/events.ts';
import { lifetimeLevel } from '../../src/pki/lifetime.ts';
import type { PkiSet } from '../../src/pki/pki-set.ts';
import type { CaStatus, GatewayStatus } from '../../src/read/ca-status.ts';
import type { GatewayPki } from '../../src/read/gateway-pki.ts';
import type { HostStatus } from '../../src/rotation/host-status.ts';
import { ago, isoTime, moment } from './format.ts';
import { momentJson, pastLines } from './moment-line.ts';
import { tableLines } from './table.ts';

const short = (sha256: string) => `${sha256.slice(0, 16)}…`;

const reasons: Readonly<Record<BlockingReason, string>> = {
  never_renewed: 'never renewed',
  renewed_never_used: 'renewed but never used',
  no_certificate: 'no certificate',
  secret_without_new_ca: 'has an enrolment secret that came without the new CA',
  enrolling: 'enrolling, may not have got its certificate yet',
};

/** Lines for people: the CAs, the rotation with the nodes that have to move, the gateways, and this host's own files where it has any. */
export function caStatusLines(status: CaStatus, host?: HostStatus): string[] {
  const { ca, moment: shown, gateways } = status;
  const { nowMs } = shown;
  if (ca === undefined) return ["the log does not know the fleet's CA: run `pushleft-controller fleet ca init`"];
  const cas = ca.trusted.map(({ sha256, not_after }) => {
    const part = sha256 === ca.issuing_ca_sha256 ? 'issues' : 'trusted';
    return `CA ${short(sha256)}  ${part}, ends ${moment(not_after)}`;
  });
  return [
    ...cas,
    // Before everything that grows with the fleet: --watch cuts what a terminal has no room for.
    ...(gateways ?? []).flatMap(problemLines),
    ...(host === undefined ? [] : hostProblemLines(host)),
    ...rotationLines(status),
    ...(gateways === null ? pastLines(shown, false) : ['', ...gatewayTable(gateways, nowMs)]),
    ...(host?.pki === undefined ? [] : ['', hostLine(host.path, host.pki, nowMs)]),
  ];
}

function gatewayTable(gateways: readonly GatewayStatus[], nowMs: number): string[] {
  return tableLines(gateways, [
    { heading: 'GATEWAY', value: ({ program }) => program },
    { heading: 'TRUSTS', value: ({ pki }) => pki?.trusted_ca_sha256s.map(short).join(' ') ?? '?' },
    { heading: 'ISSUES BY', value: ({ pki }) => (pki === undefined ? '?' : short(pki.issuer_ca_sha256)) },
    { heading: 'SERVES', value: ({ pki }) => (pki === undefined ? '?' : short(pki.serving.issuer_ca_sha256)) },
    { heading: 'ENDS', value: ({ pki }) => (pki === undefined ? '?' : servingEnd(pki, nowMs)) },
    { heading: 'LOADED', value: ({ pki }) => (pki === undefined ? '?' : ago(pki.loaded_at, nowMs)) },
  ]);
}

function rotationLines({ rotation, nodes, blockers }: CaStatus): string[] {
  const moved = nodes.filter((node) => node.moved);
  const count = `nodes on the CA that stays: ${moved.length} of ${nodes.length}`;
  if (rotation === undefined) return ['no rotation is under way', count];
  const { rotation_id, status, begun_at, refused_attempts } = rotation;
  return [
    `rotation ${rotation_id}: ${status}, since ${moment(begun_at)}, refused attempts: ${refused_attempts}`,
    count,
    ...blockers.map((blocker) => `  ${blocker.name}: ${reasonText(blocker)}`),
    ...moved.filter((node) => node.blockers.length === 0).map(({ name }) => `  ${name}: moved`),
  ];
}

function reasonText({ reason, until }: Blocker): string {
  return until === null ? reasons[reason] : `${reasons[reason]}, expires at ${moment(until)}`;
}

const servingLevel = ({ serving }: GatewayPki, nowMs: number) =>
  lifetimeLevel({ notBeforeMs: serving.not_before, notAfterMs: serving.not_after }, nowMs);

const servingEnd = (pki: GatewayPki, nowMs: number) => endOf(servingLevel(pki, nowMs), pki.serving.not_after);

function endOf(level: ReturnType<typeof lifetimeLevel>, notAfterMs: number): string {
  const end = moment(notAfterMs);
  return level === 'fresh' ? end : `${end} (${level}: fleet ca reissue-gateway)`;
}

/** Both, where it has both: that its files are bad may be why it does not trust what it should. */
function problemLines({ program, pki, missing }: GatewayStatus): string[] {
  const lines: string[] = [];
  if (missing.length > 0) {
    lines.push(`${program}: run fleet ca sync on its host, it does not trust ${missing.map(short).join(', ')}`);
  }
  if (pki !== undefined && pki.error !== null) {
    lines.push(`${program}: ${pki.error.message} (since ${moment(pki.error.since)})`);
  }
  return lines.map((line) => `warning: ${line}`);
}

function hostLine(path: string, { signer, previousSigner, trustedCaSha256s, serving }: PkiSet, nowMs: number): string {
  const before = previousSigner === undefined ? '' : ` (keeps ${short(previousSigner.caSha256)})`;
  const [issuer, trusted] = [short(signer.caSha256), trustedCaSha256s.map(short).join(' ')];
  const end = endOf(lifetimeLevel(serving, nowMs), serving.notAfterMs);
  return `files of this host (${path}): issue by ${issuer}${before}, trust ${trusted}, serve ${short(serving.issuerCaSha256)}, ends ${end}`;
}

function hostProblemLines({ problem, inStep }: HostStatus): string[] {
  if (problem !== undefined) return [`warning: the files of this host cannot be used: ${problem.message}`];
  return inStep ? [] : ['warning: the files of this host are not where the log says: run fleet ca sync here'];
}

/** The same for --json; times in ISO 8601. */
export function caStatusJson(
  { ca, moment: shown, rotation, nodes, blockers, gateways }: CaStatus,
  host: HostStatus | undefined,
) {
  return {
    ...momentJson(shown),
    ca:
      ca === undefined
        ? null
        : {
            ...ca,
            trusted: ca.trusted.map((trusted) => ({ ...trusted, not_after: isoTime(trusted.not_after) })),
            initialized_at: isoTime(ca.initialized_at),
          },
    rotation:
      rotation === undefined
        ? null
        : {
            ...rotation,
            begun_at: isoTime(rotation.begun_at),
            issuing_at: isoTime(rotation.issuing_at),
            ended_at: null,
          },
    nodes: nodes.length,
    nodes_moved: nodes.filter(({ moved }) => moved).length,
    node_states: nodes.map(({ blockers: own, ...node }) => ({ ...node, blocked_by: own.map(({ reason }) => reason) })),
    blockers: blockers.map((blocker) => ({ ...blocker, until: isoTime(blocker.until) })),
    telemetry:
      gateways === null
        ? null
        : {
            gateways: gateways.map(({ program, pki, missing }) => ({
              program,
              pki: pki === undefined ? null : pkiJson(pki, shown.nowMs),
              missing_ca_sha256s: missing,
            })),
          },
    host: host === undefined ? null : hostJson(host, shown.nowMs),
  };
}

function hostJson({ path, pki, problem, inStep }: HostStatus, nowMs: number) {
  return {
    ca_cert: path,
    in_step: inStep,
    pki:
      pki === undefined
        ? null
        : {
            trusted_ca_sha256s: pki.trustedCaSha256s,
            issuer_ca_sha256: pki.signer.caSha256,
            previous_issuer_ca_sha256: pki.previousSigner?.caSha256 ?? null,
            serving: {
              fingerprint_sha256: pki.serving.fingerprintSha256,
              issuer_ca_sha256: pki.serving.issuerCaSha256,
              not_before: isoTime(pki.serving.notBeforeMs),
              not_after: isoTime(pki.serving.notAfterMs),
              level: lifetimeLevel(pki.serving, nowMs),
            },
          },
    error: problem === undefined ? null : { code: problem.code, message: problem.message },
  };
}

function pkiJson(pki: GatewayPki, nowMs: number) {
  const { serving, loaded_at, error } = pki;
  return {
    ...pki,
    serving: {
      ...serving,
      not_before: isoTime(serving.not_before),
      not_after: isoTime(serving.not_after),
      level: servingLevel(pki, nowMs),
    },
    loaded_at: isoTime(loaded_at),
    error: error === null ? null : { ...error, since: isoTime(error.since) },
  };
}
