import { issuanceHeldUntil } from '../domain/certificate/issuance.ts';
import { ADMIT_FRESHNESS_MS } from '../domain/node/admit.ts';
import { certificateStatus, type NodeDetails } from './node-details.ts';

/** Something that keeps a node from working, and what to do about it. */
export interface Hindrance {
  readonly code:
    | 'failed'
    | 'server_not_requested'
    | 'server_not_running'
    | 'not_enrolled'
    | 'secret_expired'
    | 'clock_unsafe'
    | 'certificate_not_valid'
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
  return node.status === 'provisioning' ? provisioningHindrances(details) : activeHindrances(details);
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
    found.push({
      code: 'certificate_not_valid',
      message: 'the node has no certificate in force: every request of its agent is refused',
      remedy: `see \`${CLI} fleet show ${node.name}\`; a node that cannot renew has to be provisioned anew`,
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
