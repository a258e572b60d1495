import * as v from 'valibot';
import { canonicalCidr } from './cidr.ts';
import type { FirewallRule } from './state.ts';

const MAX_RULES = 50;
const MAX_CIDRS = 100;

const CidrSchema = v.pipe(
  v.string(),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const canonical = canonicalCidr(dataset.value);
    if (canonical.ok) return canonical.cidr;
    addIssue({ message: canonical.message });
    return NEVER;
  }),
);
const CidrsSchema = v.nullish(
  v.pipe(v.array(CidrSchema), v.maxLength(MAX_CIDRS, `at most ${MAX_CIDRS} CIDR blocks are allowed`)),
  [],
);

/** "80" or "1024-5000", ascending, from 1 to 65535, without leading zeros. */
function isPort(text: string): boolean {
  const match = /^([1-9]\d{0,4})(?:-([1-9]\d{0,4}))?$/.exec(text);
  if (match === null) return false;
  const [low, high] = [Number(match[1]), Number(match[2] ?? match[1])];
  return low <= high && high <= 65_535;
}

const RuleSchema = v.pipe(
  v.object({
    description: v.nullish(v.pipe(v.string(), v.maxLength(255, 'is too long')), null),
    direction: v.picklist(['in', 'out']),
    protocol: v.picklist(['tcp', 'udp', 'icmp', 'esp', 'gre']),
    port: v.nullish(v.pipe(v.string(), v.check(isPort, 'must be a port or a range of ports')), null),
    source_ips: CidrsSchema,
    destination_ips: CidrsSchema,
  }),
  v.forward(
    v.check(
      (rule) => hasPorts(rule) === (rule.port !== null),
      'is required for tcp and udp, and for no other protocol',
    ),
    ['port'],
  ),
  v.forward(
    v.check((rule) => (rule.direction === 'in') === rule.source_ips.length > 0, 'belongs to direction in'),
    ['source_ips'],
  ),
  v.forward(
    v.check((rule) => (rule.direction === 'out') === rule.destination_ips.length > 0, 'belongs to direction out'),
    ['destination_ips'],
  ),
);

const hasPorts = ({ protocol }: Pick<FirewallRule, 'protocol'>): boolean => protocol === 'tcp' || protocol === 'udp';

/** The `rules` of a request body, brought into the form in which the API returns them. */
export const RulesSchema = v.pipe(
  v.array(RuleSchema),
  v.maxLength(MAX_RULES, `at most ${MAX_RULES} rules are allowed`),
);
