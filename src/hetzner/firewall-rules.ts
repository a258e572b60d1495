import { createHash } from 'node:crypto';
import type { Pool } from '../domain/fields.ts';
import type { InboundRule } from './api.ts';
import { canonicalCidr } from './cidr.ts';
import { accepted, type HetznerResult, refused } from './refusal.ts';
import type { FirewallRule } from './resources.ts';

/** Most sources of a rule and most rules of a firewall. Hetzner documentation, "Firewalls". */
const MAX_SOURCES_PER_RULE = 100;
const MAX_SSH_RULES = 48;
const ANYWHERE = ['0.0.0.0/0', '::/0'] as const;

/**
 * Checks the operators' CIDRs and returns them canonical, sorted and without repetitions. Refuses `cidrs_missing` (nobody could reach
 * a new host), `cidr_invalid` (all bad ones at once, with suggestions) and `cidrs_too_many`.
 */
export function parseOperatorCidrs(cidrs: readonly string[]): HetznerResult<readonly string[]> {
  if (cidrs.length === 0)
    return refused('cidrs_missing', 'no operator CIDR is given: nobody could reach a new host by SSH');
  const checks = cidrs.map((text) => ({ text, check: canonicalCidr(text.trim()) }));
  const wrong = checks.flatMap(({ text, check }) => (check.ok ? [] : [{ text, suggestion: check.suggestion }]));
  if (wrong.length > 0) {
    const told = wrong.map(({ text, suggestion }) =>
      suggestion === null ? `"${text}"` : `"${text}" (did you mean ${suggestion}?)`,
    );
    return refused('cidr_invalid', `not a CIDR: ${told.join(', ')}`);
  }
  const canonical = [...new Set(checks.flatMap(({ check }) => (check.ok ? [check.cidr] : [])))].sort();
  const most = MAX_SOURCES_PER_RULE * MAX_SSH_RULES;
  if (canonical.length > most)
    return refused('cidrs_too_many', `${canonical.length} CIDRs are more than a firewall holds (${most})`);
  return accepted(canonical);
}

/** The exact inbound rules of a pool, from canonical operator CIDRs: SSH for operators; HTTP and HTTPS for all on application nodes. */
export function poolRules(pool: Pool, operatorCidrs: readonly string[]): readonly InboundRule[] {
  const ssh: InboundRule[] = [];
  for (let from = 0; from < operatorCidrs.length; from += MAX_SOURCES_PER_RULE) {
    ssh.push(tcpRule('22', operatorCidrs.slice(from, from + MAX_SOURCES_PER_RULE), 'SSH from operators'));
  }
  return pool === 'application' ? [...ssh, tcpRule('80', ANYWHERE, 'HTTP'), tcpRule('443', ANYWHERE, 'HTTPS')] : ssh;
}

function tcpRule(port: string, sources: readonly string[], description: string): InboundRule {
  return { direction: 'in', protocol: 'tcp', port, source_ips: sources, description };
}

type AnyRule = InboundRule | FirewallRule;

/** True when both sets let exactly the same through, whatever the order, the notation and the grouping into rules. */
export function sameRules(left: readonly AnyRule[], right: readonly AnyRule[]): boolean {
  return rulesDigest(left) === rulesDigest(right);
}

/** SHA-256 in hex over what the rules let through; equal for equal sets. */
export function rulesDigest(rules: readonly AnyRule[]): string {
  const openings = [...new Set(rules.flatMap(openingsOf))].sort();
  return createHash('sha256').update(openings.join('\n')).digest('hex');
}

/** One line a pair of port and peer, so that splitting a rule in two changes nothing. */
function openingsOf(rule: AnyRule): readonly string[] {
  const peers = rule.direction === 'in' ? rule.source_ips : rule.destination_ips;
  return (peers.length === 0 ? ['none'] : peers).map((peer) => {
    const check = canonicalCidr(peer);
    return `${rule.direction} ${rule.protocol} ${canonicalPort(rule.port)} ${check.ok ? check.cidr : peer}`;
  });
}

function canonicalPort(port: string | null): string {
  const [first = '', last = first] = (port ?? 'any').split('-');
  return first === last ? first : `${first}-${last}`;
}
