import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Model, STEPS, type Step } from './model.ts';

const HOSTS = 3;
/** How likely steps are beside others, where that is not 1. */
const WEIGHTS: Partial<Record<Step['what'], number>> = {
  renew: 4,
  use: 4,
  settle: 3,
  complete: 3,
  enroll: 2,
  switch: 2,
  time: 2,
};
const step: fc.Arbitrary<Step> = fc.record({
  what: fc.oneof(...STEPS.map((what) => ({ weight: WEIGHTS[what] ?? 1, arbitrary: fc.constant(what) }))),
  host: fc.nat({ max: HOSTS - 1 }),
  n: fc.nat({ max: 9_999 }),
});

/** What a completed rotation must leave: whoever must move has moved (how many), and no secret is out that would not lead in. */
function checkCompleted(model: Model): number {
  const { current_ca_sha256 } = model.ca;
  let moved = 0;
  for (const { nodeId } of model.hosts) {
    const node = model.node(nodeId);
    const own = model.certificates.filter((c) => c.node_id === nodeId);
    const used = own.filter((c) => c.first_used_at !== null && c.revoked_at === null && c.not_after > model.now);
    if (['active', 'unhealthy', 'draining'].includes(node.status)) {
      expect(used.map((c) => c.issuer_ca_sha256)).toContain(current_ca_sha256);
      moved += 1;
    }
    for (const { ca_sha256s } of node.armed_secrets.filter((secret) => secret.expires_at > model.now)) {
      expect(ca_sha256s).toContain(current_ca_sha256);
    }
  }
  expect(model.certificates.filter((c) => c.revoked_at === null && c.issuer_ca_sha256 !== current_ca_sha256)).toEqual(
    [],
  );
  return moved;
}

test('whatever happens in whatever order: no rotation locks anybody out, and no CA issues that may not', async () => {
  const seen = { completed: 0, moved: 0, aborted: 0 };
  const property = fc.asyncProperty(
    fc.nat({ max: HOSTS }),
    fc.array(step, { minLength: 40, maxLength: 160, size: 'max' }),
    async (enrolled, steps) => {
      const model = await Model.create(HOSTS);
      for (let host = 0; host < enrolled; host += 1) {
        await model.take({ what: 'enroll', host, n: 0 });
        await model.take({ what: 'use', host, n: 0 });
      }
      const over = new Set<string>();
      for (const taken of steps) {
        const { issuing_ca_sha256 } = model.ca;
        const couldComeIn = model.hosts.filter((host) => model.hasWayIn(host));
        const events = await model.take(taken);
        for (const { type, data } of events) {
          if (type === 'certificate_authorized') {
            expect(data.issuer_ca_sha256).toBe(issuing_ca_sha256);
            expect(over).not.toContain(data.issuer_ca_sha256);
          }
          if (type === 'ca_rotation_aborted') {
            seen.aborted += 1;
            over.add(data.ca_sha256);
          }
          if (type === 'ca_rotation_completed') {
            seen.completed += 1;
            over.add(data.previous_ca_sha256);
          }
          if (type === 'node_enrollment_secret_armed') {
            expect(data.ca_sha256s).toContain(model.ca.current_ca_sha256);
          }
          if (type === 'ca_rotation_begun') expect(over).not.toContain(data.ca_sha256);
        }
        const completed = events.some(({ type }) => type === 'ca_rotation_completed');
        if (completed) seen.moved += checkCompleted(model);
        if (!['time', 'late', 'revoke', 'fail', 'status'].includes(taken.what)) {
          // A lost node may lose its certificate by a completion (requirement); it is enrolled anew.
          const mustStay = couldComeIn.filter(({ nodeId }) => !completed || model.node(nodeId).status !== 'lost');
          expect(mustStay.filter((host) => !model.hasWayIn(host))).toEqual([]);
        }
      }
    },
  );
  await fc.assert(property, { numRuns: 300 });
  // Otherwise nothing was shown.
  expect(seen.completed).toBeGreaterThan(30);
  expect(seen.moved).toBeGreaterThan(20);
  expect(seen.aborted).toBeGreaterThan(30);
});
