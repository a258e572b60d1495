import type { Pool } from '../domain/fields.ts';
import type { HetznerApi, InboundRule } from './api.ts';
import { AmbiguousCreateError, hasCode } from './errors.ts';
import { parseOperatorCidrs, poolRules, rulesDigest, sameRules } from './firewall-rules.ts';
import { carriesLabels, poolLabels } from './labels.ts';
import { accepted, type HetznerResult, refused } from './refusal.ts';
import type { Firewall } from './resources.ts';
import { awaitActions, describeAction, type Waiting } from './waiting.ts';

/** A pool's firewall as it now is; `rulesSha256` is the digest of its rules. */
export interface ConvergedFirewall {
  readonly change: 'created' | 'updated' | 'unchanged';
  readonly firewallId: number;
  readonly rulesSha256: string;
}

/**
 * Brings firewall `pushleft-<pool>` to exactly the pool's rules, creating it where there is none and calling set_rules only when
 * something differs. Refuses bad CIDRs, `firewall_name_taken` (the name is held without our labels) and `firewall_not_applied`.
 */
export async function convergeFirewall(
  api: HetznerApi,
  pool: Pool,
  operatorCidrs: readonly string[],
  waiting: Waiting,
): Promise<HetznerResult<ConvergedFirewall>> {
  const cidrs = parseOperatorCidrs(operatorCidrs);
  if (!cidrs.ok) return cidrs;
  const name = `pushleft-${pool}`;
  const rules = poolRules(pool, cidrs.value);
  const rulesSha256 = rulesDigest(rules);
  const { firewall, created } = await findOrCreate(api, name, pool, rules);
  if (!carriesLabels(firewall.labels, poolLabels(pool))) {
    return refused(
      'firewall_name_taken',
      `firewall ${name} (${firewall.id}) exists without our labels; rename it, it is not touched`,
    );
  }
  if (sameRules(firewall.rules, rules)) {
    return accepted({ change: created ? 'created' : 'unchanged', firewallId: firewall.id, rulesSha256 });
  }
  const outcome = await awaitActions(api, await api.setFirewallRules(firewall.id, rules), waiting);
  if (outcome.state === 'succeeded') return accepted({ change: 'updated', firewallId: firewall.id, rulesSha256 });
  const action = outcome.state === 'failed' ? outcome.action : outcome.actions[0];
  const about = action === undefined ? '' : `: ${describeAction(action)}`;
  return refused('firewall_not_applied', `the rules of firewall ${name} are not in force on every server${about}`);
}

/** A create that failed unclearly, or met another operator's, ends in one more look; only what that finds counts. */
async function findOrCreate(
  api: HetznerApi,
  name: string,
  pool: Pool,
  rules: readonly InboundRule[],
): Promise<{ firewall: Firewall; created: boolean }> {
  const existing = await api.findFirewall(name);
  if (existing !== undefined) return { firewall: existing, created: false };
  try {
    return { firewall: await api.createFirewall({ name, labels: poolLabels(pool), rules }), created: true };
  } catch (error) {
    if (!(error instanceof AmbiguousCreateError) && !hasCode(error, 'uniqueness_error')) throw error;
    const appeared = await api.findFirewall(name);
    if (appeared === undefined) throw error;
    return { firewall: appeared, created: error instanceof AmbiguousCreateError };
  }
}
