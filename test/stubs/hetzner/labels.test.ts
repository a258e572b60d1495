import { describe, expect, test } from 'vitest';
import { isLabelKey, isLabelValue, parseLabelSelector } from '../../../stubs/hetzner/labels.ts';

describe('label selector over {env: prod, tier: "", example.com/role: web}', () => {
  const labels = { env: 'prod', tier: '', 'example.com/role': 'web' };
  test.each([
    ['', true],
    ['env=prod', true],
    ['env==prod', true],
    ['env=test', false],
    ['env!=prod', false],
    ['env!=test', true],
    ['absent!=x', true],
    ['env', true],
    ['absent', false],
    ['!env', false],
    ['!absent', true],
    ['tier=', true],
    ['env in (test,prod)', true],
    ['env in (test, staging)', false],
    ['absent in (x)', false],
    ['env notin (test,prod)', false],
    ['absent notin (x)', true],
    ['example.com/role=web,env in (prod,test),!absent', true],
    ['example.com/role=web,env in (a,b)', false],
  ])('%s: %s', (selector, holds) => expect(parseLabelSelector(selector)(labels)).toBe(holds));

  test.each(['=prod', 'env=a b', 'env in prod', 'env in (a', 'env=prod,', '!', 'a/b/c=d', 'env=/x', 'env=a=b'])(
    '%s: refused',
    (selector) => expect(() => parseLabelSelector(selector)).toThrow('label selector is invalid'),
  );
});

test.each([
  ['a', true],
  ['pushleft.node_id', true],
  ['example.com/my', true],
  ['a'.repeat(63), true],
  ['a'.repeat(64), false],
  ['', false],
  ['-a', false],
  ['a-', false],
  ['hetzner.cloud/x', false],
  ['Exa_mple/x', false],
  [`${'a.'.repeat(126)}aa/x`, false],
])('label key %s: %s', (key, valid) => expect(isLabelKey(key)).toBe(valid));

test.each([
  ['', true],
  ['platform', true],
  ['a'.repeat(63), true],
  ['a'.repeat(64), false],
  ['a:b', false],
  ['a/b', false],
  ['a,b', false],
  ['.a', false],
])('label value %s: %s', (value, valid) => expect(isLabelValue(value)).toBe(valid));
