import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import canonicalize from 'canonicalize';
import { Client } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { catalogue, type FleetEvent, type NewEvent } from '../../src/domain/event/catalogue.ts';
import { jobStream, nodeStream } from '../../src/domain/stream.ts';
import { chainHash, GENESIS_HASH } from '../../src/log/chain.ts';
import { enrolled, sample } from '../support/events.ts';

const NODES = 500;
const START = Date.UTC(2026, 0, 1);
const METADATA = {
  actor: { kind: 'gateway', id: 'gateway@bench:1', database_user: 'bench', client_address: null },
  epoch: 1,
  program_version: '0.0.0-bench',
};

/**
 * Fills an empty log with `count` events of a fleet that lived for a long time: nodes are provisioned, enrolled and admitted, then jobs
 * are queued, leased, sometimes lost and leased again, and completed; now and then a host's kernel changes. The bytes are canonical and
 * chained like any other log's, but go in by COPY, since appending them would take longer than the benchmark.
 */
export async function writeLongLog(url: string, count: number): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const stream = client.query(
    copyFrom('COPY log.events (position, stream, revision, type, at, hash, body) FROM STDIN'),
  );
  await pipeline(copyLines(count), stream);
  await client.query('ANALYZE log.events');
  await client.end();
}

function* copyLines(count: number): Generator<string> {
  const revisions = new Map<string, number>();
  let hash = GENESIS_HASH;
  let position = 0;
  let lines = '';
  for (const { stream, event } of history()) {
    position += 1;
    const at = START + position * 250;
    const id = randomUUID();
    const metadata = { ...METADATA, command_id: id, correlation_id: id };
    const { version } = catalogue[event.type];
    const body = canonicalize({ at, data: event.data, metadata, stream, type: event.type, version }) ?? '';
    hash = chainHash(hash, body);
    const revision = (revisions.get(stream) ?? 0) + 1;
    revisions.set(stream, revision);
    lines += `${position}\t${stream}\t${revision}\t${event.type}\t${at}\t\\\\x${hash}\t${body.replaceAll('\\', '\\\\')}\n`;
    if (lines.length > 256 * 1024 || position === count) {
      yield lines;
      lines = '';
    }
    if (position === count) return;
  }
}

/** A fleet's life, without end. */
function* history(): Generator<NewEvent> {
  const nodes: string[] = [];
  for (let n = 0; n < NODES; n += 1) {
    const nodeId = randomUUID();
    nodes.push(nodeId);
    const own = identityOf(nodeId, n);
    for (const event of [...enrolled, sample.node_admitted]) {
      const shared = Object.entries(own).filter(([name]) => Object.hasOwn(event.data, name));
      yield on(nodeStream(nodeId), { ...event, data: { ...event.data, ...Object.fromEntries(shared) } } as FleetEvent);
    }
  }
  for (let j = 0; ; j += 1) yield* lifeOfJob(j, nodes[j % NODES] ?? '');
}

function* lifeOfJob(j: number, nodeId: string): Generator<NewEvent> {
  const jobId = randomUUID();
  const stream = jobStream(jobId);
  const common = { job_id: jobId, node_id: nodeId };
  const payload = { payload_sha256: digest(`payload ${j}`), pool: null, org_id: null, max_attempts: 3 };
  yield on(stream, { type: 'job_queued', data: { ...common, ...payload, kind: 'diagnose_host' } });
  const attempts = j % 20 === 0 ? 2 : 1;
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const request = { request_id: randomUUID(), token_sha256: digest(`token ${j} ${attempt}`), reissued: false };
    yield on(stream, { type: 'job_leased', data: { ...common, ...request, attempt, expires_at: START + j * 1_000 } });
    if (attempt < attempts) yield on(stream, { type: 'job_lease_expired', data: { ...common, attempt } });
  }
  const result = { attempt: attempts, result_sha256: digest(`result ${j}`) };
  yield on(stream, { type: 'job_completed', data: { ...common, ...result } });
  if (j % 50 === 0) {
    const facts = { ...sample.node_host_facts_changed.data, node_id: nodeId, kernel: `6.8.${j}-generic` };
    yield on(nodeStream(nodeId), { type: 'node_host_facts_changed', data: facts });
  }
}

/** What has to differ from node to node in the sample events. */
function identityOf(nodeId: string, n: number) {
  return {
    node_id: nodeId,
    name: `app-fsn1-${n}`,
    server_id: n + 1,
    certificate_id: randomBytes(16).toString('hex'),
    fingerprint: digest(`certificate ${n}`),
    secret_sha256: digest(`secret ${n}`),
  };
}

function on(stream: string, event: FleetEvent): NewEvent {
  return { stream, event };
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
