import type { Refusal } from './result.ts';

/**
 * Every code with which a command can be refused, and what the person who asked reads.
 * The tables of HTTP statuses (src/gateway) and exit codes (cli) are checked by the compiler against these keys.
 * `message` says what is the matter, `remedy` what to do about it; `{name}` is replaced by the refusal's detail of that name.
 */
const refusals = {
  node_unknown: {
    message: 'no node is known by {node}',
    remedy: 'see `pushleft-controller fleet list` for the names and ids',
  },
  node_ambiguous: { message: '{node} fits more than one node', remedy: 'give the whole id' },
  node_name_taken: { message: 'the name {name} belongs to another node', remedy: 'choose another --name' },
  node_exists: { message: 'node {node_id} was requested before, differently', remedy: 'use --resume to go on with it' },
  node_not_provisioning: {
    message: 'node {node_id} is {status}, not provisioning',
    remedy: 'only a node that is being provisioned can take this step',
  },
  node_not_failed: {
    message: 'node {node_id} is {provision_state}, not failed',
    remedy: 'use `fleet provision --resume` for a node whose provisioning has not failed',
  },
  node_not_active: {
    message: 'the node is {status}',
    remedy: 'wait until it has enrolled, see `pushleft-controller fleet why`',
  },
  node_silent: {
    message: 'the node was last heard {silent_ms} ms ago, more than {limit_ms} ms',
    remedy: 'check the agent: `systemctl status pushleft-agent` on the host',
  },
  capacity_unknown: {
    message: 'no capacity is recorded for the node',
    remedy: 'run `pushleft-controller fleet provision --resume` so that it is recorded',
  },
  enrollment_refused: { message: 'enrolment refused', remedy: 'ask an operator' },
  certificate_unknown: { message: 'the certificate is not accepted', remedy: 'ask an operator' },
  certificate_expired: { message: 'the certificate has expired', remedy: 'ask an operator to re-enrol the node' },
  clock_unsafe: {
    message: "the time of the {clock} is {skew_ms} ms off the database's clock: no certificate is issued until {until}",
    remedy: 'see `pushleft-controller fleet doctor`, and the runbook on clocks in docs/operations.md',
  },
  certificate_mismatch: {
    message: 'the certificate is not the one that was authorised',
    remedy: 'ask for a new certificate',
  },
  job_unknown: { message: 'no job has the id {job_id}', remedy: 'see `pushleft-controller job list`' },
  job_target_unclear: {
    message: 'job {job_id} is to be for one node or for one pool, not for both or neither',
    remedy: 'give either --node or --pool',
  },
  job_exists: { message: 'job {job_id} was queued before, differently', remedy: 'queue it under a new id' },
  lease_conflict: { message: 'the lease is not held with this token', remedy: 'stop the work and lease again' },
} as const satisfies Record<string, { message: string; remedy: string }>;

/** The closed set of refusal codes. */
export type RefusalCode = keyof typeof refusals;

/** Fills a refusal's message and remedy with its details, for people. */
export function describeRefusal({ code, details }: Refusal): { message: string; remedy: string } {
  const fill = (text: string) => text.replaceAll(/\{(\w+)\}/g, (_, name: string) => (details[name] ?? name).toString());
  const { message, remedy } = refusals[code];
  return { message: fill(message), remedy: fill(remedy) };
}
