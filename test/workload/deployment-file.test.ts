import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { deploy } from '../../src/domain/deployment/deploy.ts';
import { MOST } from '../../src/domain/deployment/events.ts';
import { GENESIS_HASH } from '../../src/log/chain.ts';
import { seal } from '../../src/log/codec.ts';
import { parseDeploymentFile, specSha256 } from '../../src/workload/deployment-file.ts';
import { START, sample } from '../support/events.ts';
import { METADATA } from '../support/given.ts';

const DOCUMENTED = /```json\n([\s\S]+?)```/.exec(
  readFileSync(join(import.meta.dirname, '../../docs/workloads.md'), 'utf8'),
)?.[1];
const file = JSON.parse(DOCUMENTED ?? '') as { roles: object[] };
const parse = (change: object) => parseDeploymentFile(JSON.stringify({ ...file, ...change }));
const web = file.roles[1];
const DEPLOYMENT = sample.deployment_created.data.deployment_id;

describe('a deployment file', () => {
  test('the documented one: read, what is left out has its default', () => {
    const read = parse({});
    expect(read).toMatchObject({
      ok: true,
      file: { pool: 'application', environment: { sealed: false }, build: null, roles: [{ count: 1, disk_gb: 0 }, {}] },
    });
  });

  test.each([
    ['not JSON', '{', 'it is not JSON'],
    ['another JSON', '"shop"', 'the file: expected Object'],
  ])('%s: one line', (_, text, problem) => expect(parseDeploymentFile(text)).toEqual({ ok: false, problem }));

  test.each<[string, object, string]>([
    ['no name', { name: undefined }, 'name is missing'],
    ['an unknown key', { replicas: 2 }, 'replicas: expected no such key'],
    [
      'a name that is none',
      { name: 'Shop!' },
      String.raw`name: expected text like /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/`,
    ],
    ['two roles of one name', { roles: [web, web] }, 'two roles have the same name'],
    ['hostnames that nobody serves', { roles: [file.roles[0]] }, 'there are hostnames, and no role serves them'],
    [
      'a role that serves and does not listen',
      { roles: [{ ...web, listens: false }] },
      'a role that serves hostnames is a service that listens',
    ],
    ['no CPU', { roles: [{ ...web, cpu_millis: 0 }] }, 'roles.0.cpu_millis: expected >=1'],
    ['no memory', { roles: [{ ...web, memory_mb: 0 }] }, 'roles.0.memory_mb: expected >=1'],
    [
      'more instances than one command can ask for',
      { roles: [web, { ...file.roles[0], role: 'crowd', count: MOST.instances }] },
      'it has more than 800 instances in all',
    ],
    [
      'more instances behind its hostnames than a route takes',
      { roles: [{ ...web, count: MOST.serving + 1 }] },
      'a role that serves hostnames has at most 256 instances',
    ],
    ['two roles that serve', { roles: [web, { ...web, role: 'api' }] }, 'only one role can serve hostnames'],
    ['a hostname twice', { hostnames: ['a.example.com', 'a.example.com'] }, 'a hostname is named twice'],
    [
      'members of an open environment',
      { environment: { sealed: false, members: ['app-1'] } },
      'members belong to a sealed environment',
    ],
  ])('%s: one line that says where', (_, change, problem) => expect(parse(change)).toEqual({ ok: false, problem }));

  test('as much as a file may hold: the log takes it', () => {
    const roles = Array.from({ length: MOST.roles }, (_, i) => ({
      ...web,
      role: `r${'o'.repeat(29)}${String(i).padStart(2, '0')}`,
      serves_hostnames: i === 0,
      count: MOST.instances / MOST.roles,
      command: Array.from({ length: 28 }, () => 'w'.repeat(512)),
    }));
    const read = parse({ roles });
    if (!read.ok) throw new Error(read.problem);
    const { build: _, environment: _sealed, ...described } = read.file;
    const deployment = {
      ...described,
      deployment_id: DEPLOYMENT,
      build: null,
      build_job_id: null,
      sealed_member_node_ids: null,
      spec_sha256: specSha256(read.file, null),
    };
    const decided = deploy({ deployment, build: null }, { present: [], members: [] });
    if ('refusal' in decided) throw new Error(decided.refusal.code);
    expect(decided.events).toHaveLength(1 + MOST.instances);
    expect(() => seal({ position: 0, hash: GENESIS_HASH, at: 0 }, decided.events, METADATA, START)).not.toThrow();
  });

  test('the same in another order: the same digest; another source: another', () => {
    const [one, two] = [
      parse({}),
      parseDeploymentFile(JSON.stringify(Object.fromEntries(Object.entries(file).toReversed()))),
    ];
    if (!one.ok || !two.ok) throw new Error('not read');
    expect(specSha256(one.file, null)).toBe(specSha256(two.file, null));
    const built = { ...one.file, build: { source: 'a.tar', command: ['make'], timeout_seconds: 60 } };
    expect(specSha256(built, 'a')).not.toBe(specSha256(built, 'b'));
  });
});
