import * as v from 'valibot';
import { invalidField } from './errors.ts';

const SEGMENT = '[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?';
const DNS_LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const KEY = new RegExp(`^(?:(?<prefix>${DNS_LABEL}(?:\\.${DNS_LABEL})*)/)?${SEGMENT}$`);
const VALUE = new RegExp(`^(?:${SEGMENT})?$`);
const RESERVED_PREFIX = 'hetzner.cloud';

/** True for `[prefix/]name` with a DNS subdomain of at most 253 characters as prefix, other than the reserved one. */
export function isLabelKey(key: string): boolean {
  const match = KEY.exec(key);
  if (match === null) return false;
  const prefix = match.groups?.['prefix'] ?? '';
  return prefix.length <= 253 && prefix !== RESERVED_PREFIX;
}

/** True for an empty value and for at most 63 alphanumerics with `-_.` between. */
export const isLabelValue = (value: string): boolean => VALUE.test(value);

/** The `labels` of a request body. */
export const LabelsSchema = v.record(
  v.pipe(v.string(), v.check(isLabelKey, 'label key is invalid')),
  v.pipe(v.string(), v.check(isLabelValue, 'label value is invalid')),
);

type Labels = Readonly<Record<string, string>>;
type Requirement = (labels: Labels) => boolean;

/**
 * Reads a label selector: `k`, `!k`, `k=v`, `k==v`, `k!=v`, `k in (a,b)`, `k notin (a,b)`, a comma meaning AND.
 * As in the API (and in Kubernetes), `!=` and `notin` hold for a resource without the key too.
 * Throws `invalid_input` on anything else; an absent or empty selector holds for everything.
 */
export function parseLabelSelector(selector: string | undefined): Requirement {
  if (selector === undefined || selector.trim() === '') return () => true;
  const requirements = splitOutsideParentheses(selector).map(parseRequirement);
  return (labels) => requirements.every((holds) => holds(labels));
}

const splitOutsideParentheses = (selector: string): string[] => selector.split(/,(?![^(]*\))/);

function parseRequirement(text: string): Requirement {
  const trimmed = text.trim();
  const set = /^(?<key>\S+)\s+(?<operator>in|notin)\s*\((?<values>[^()]*)\)$/.exec(trimmed)?.groups;
  if (set !== undefined) {
    const key = selectorKey(set['key']);
    const values = new Set((set['values'] ?? '').split(',').map((value) => selectorValue(value.trim())));
    const wanted = set['operator'] === 'in';
    return (labels) => (Object.hasOwn(labels, key) && values.has(labels[key] ?? '')) === wanted;
  }
  const equality = /^(?<key>[^=!\s]+)\s*(?<operator>==|=|!=)\s*(?<value>[^=!]*)$/.exec(trimmed)?.groups;
  if (equality !== undefined) {
    const key = selectorKey(equality['key']);
    const value = selectorValue(equality['value'] ?? '');
    const wanted = equality['operator'] !== '!=';
    return (labels) => (Object.hasOwn(labels, key) && labels[key] === value) === wanted;
  }
  const absent = trimmed.startsWith('!');
  const key = selectorKey(absent ? trimmed.slice(1).trim() : trimmed);
  return (labels) => Object.hasOwn(labels, key) !== absent;
}

function selectorKey(key: string | undefined): string {
  if (key === undefined || !isLabelKey(key)) throw invalidField('label_selector', 'label selector is invalid');
  return key;
}

function selectorValue(value: string): string {
  if (!isLabelValue(value)) throw invalidField('label_selector', 'label selector is invalid');
  return value;
}
