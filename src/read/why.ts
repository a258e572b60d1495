import { issuanceHeldUntil } from '../domain/certificate/issuance.ts';
import type { CertificateState } from '../domain/certificate/state.ts';
import { ADMIT_FRESHNESS_MS } from '../domain/node/admit.ts';
import type { IdentityConflict } from '../domain/node/state.ts';
import { certificateStatus, type NodeDetails } from './node-details.ts';
import { silenceHindrances } from './why-silent.ts';

/** Something that keeps a node from working, and what to do about it. */
export interface Hindrance {
  readonly code:
    | 'failed'
    | 'server_not_requested'
    | 'server_not_running'
    | 'not_enrolled'
    | 'secret_expired'
    | 'clock_unsafe'
    | 'certificate_expired'
    | 'certificates_revoked'
    | 'certificate_not_issued'
    | 'identity_conflict'
    | 'lost'
    | 'losses_held'
    | 'losses_frozen'
    | 'unhealthy'
    | 'silent'
    | 'capacity_unknown'
    | 'not_admitted';
  readonly message: string;
  readonly remedy: string;
}

const CLI = 'pushleft-controller';

/**
 * What holds a node where it is, the first thing to look at first; empty for a node that takes its pool's work. In the past nothing is
 * known of silence.
 */
export function hindrances(details: NodeDetails): Hindrance[] {
  const { node } = details;
  if (node.status === 'provisioning') return provisioningHindrances(details);
  // Nothing else makes a lost node work again.
  if (node.status === 'lost') return silenceHindrances(details);
  return [...silenceHindrances(details), ...activeHindrances(details)];
}

function provisioningHindrances({ node, moment }: NodeDetails): Hindrance[] {
  const resume = `run \`${CLI} fleet provision --resume ${node.name}\``;
  const state = node.provision_state;
  switch (state) {
    case 'pending':
      return [{ code: 'server_not_requested', message: 'no server has been requested yet', remedy: resume }];
    case 'server_requested':
      return [
        {
          code: 'server_not_running',
          message: `server ${node.server_id ?? ''} is not known to run yet`,
          remedy: resume,
        },
      ];
    case 'awaiting_enrollment':
      return [...heldIssuance(moment), awaitingEnrollment(node, moment.nowMs, resume)];
    case 'failed':
      return [
        {
          code: 'failed',
          message: `provisioning failed: ${(node.failure_reason ?? 'unknown').replaceAll('_', ' ')}`,
          remedy: `look at /var/log/cloud-init-output.log on the host, then run \`${CLI} fleet provision --retry ${node.name}\``,
        },
      ];
    case 'enrolled':
      return [];
  }
}

/** No node can enrol while the log's time is far ahead of the clock. */
function heldIssuance({ at, nowMs }: NodeDetails['moment']): Hindrance[] {
  const until = issuanceHeldUntil({ at, now: nowMs });
  if (until === undefined) return [];
  return [
    {
      code: 'clock_unsafe',
      message: `the log's time is ${Math.ceil((at - nowMs) / 1_000)} s ahead of the clock: no certificate is issued until ${new Date(until).toISOString()}`,
      remedy: `see \`${CLI} fleet doctor\` and the runbook on clocks in docs/operations.md`,
    },
  ];
}

function awaitingEnrollment(node: NodeDetails['node'], nowMs: number, resume: string): Hindrance {
  const endsMs = Math.max(0, ...node.armed_secrets.map(({ expires_at }) => expires_at));
  if (endsMs <= nowMs) {
    return { code: 'secret_expired', message: 'the agent did not enrol before its secret expired', remedy: resume };
  }
  return {
    code: 'not_enrolled',
    message: `the agent has not enrolled yet; its secret lasts ${Math.ceil((endsMs - nowMs) / 1_000)} s more`,
    remedy: 'wait, or look at /var/log/cloud-init-output.log on the host',
  };
}

function activeHindrances({ node, certificates, moment, live, lastSeenAt }: NodeDetails): Hindrance[] {
  const found: Hindrance[] = [];
  if (!certificates.some((certificate) => certificateStatus(certificate, moment.nowMs) === 'valid')) {
    found.push(lockedOut(node, certificates, moment.nowMs));
  }
  if (node.conflict !== null) {
    found.push({
      code: 'identity_conflict',
      message: describeConflict(node.conflict),
      remedy: `stop the host that is not the node (a restored snapshot, a copied disk), then run \`${CLI} fleet reenroll ${node.name}\` for the other: its new certificate locks the copy out`,
    });
  }
  const silentMs = moment.nowMs - (lastSeenAt ?? 0);
  if (live && silentMs > ADMIT_FRESHNESS_MS) {
    found.push({
      code: 'silent',
      message: `the agent was last heard ${Math.floor(silentMs / 1_000)} s ago`,
      remedy: 'on the host: `systemctl status pushleft-agent`, `pushleft-agent doctor`',
    });
  }
  if (node.cpu_millis === null) {
    found.push({
      code: 'capacity_unknown',
      message: 'no capacity is recorded',
      remedy: `run \`${CLI} fleet provision --resume ${node.name}\``,
    });
  }
  if (!node.schedulable) {
    found.push({
      code: 'not_admitted',
      message: "the node is not admitted: it takes jobs that name it, and none of its pool's",
      remedy: `run \`${CLI} fleet admit ${node.name}\``,
    });
  }
  return found;
}

/** What has become of the newest certificate of a node that has none in force, and how the node gets back in. */
function lockedOut(
  { name, status, armed_secrets }: NodeDetails['node'],
  certificates: readonly CertificateState[],
  nowMs: number,
): Hindrance {
  const refused = 'every request of its agent is refused';
  const remedy = comeBack(name, status, Math.max(0, ...armed_secrets.map(({ expires_at }) => expires_at)), nowMs);
  const newest = certificates.find((certificate) => certificateStatus(certificate, nowMs) !== 'not_issued');
  if (newest !== undefined && newest.revoked_at !== null) {
    const how = `${(newest.revoked_reason ?? 'unknown').replaceAll('_', ' ')}, at ${second(newest.revoked_at)}`;
    const message = `the node's newest certificate was revoked (${how}) and none is in force: ${refused}`;
    return { code: 'certificates_revoked', message, remedy };
  }
  if (newest !== undefined) {
    const message = `the node's newest certificate expired at ${second(newest.not_after)} and none is in force: ${refused}`;
    return { code: 'certificate_expired', message, remedy };
  }
  return { code: 'certificate_not_issued', message: `no certificate was issued to the node: ${refused}`, remedy };
}

function comeBack(name: string, status: NodeDetails['node']['status'], armedUntil: number, nowMs: number): string {
  if (status === 'retired') return 'a retired node does not come back: provision a new one';
  if (armedUntil > nowMs) {
    return `carry ${name}.reenroll.json to its host before ${second(armedUntil)}, or run \`${CLI} fleet reenroll ${name}\` again`;
  }
  return `run \`${CLI} fleet reenroll ${name}\` and carry the file to its host`;
}

/** One line: which two hosts were seen to use one identity in turn. */
export function describeConflict({ addresses, boot_ids }: IdentityConflict): string {
  return `two hosts use this identity: addresses ${addresses.join(', ')}; boot ids ${boot_ids.join(', ')}`;
}

function second(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}
