import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseDeploymentFile, specSha256 } from '../../src/workload/deployment-file.ts';

const DOCUMENTED = /```json\n([\s\S]+?)```/.exec(
  readFileSync(join(import.meta.dirname, '../../docs/workloads.md'), 'utf8'),
)?.[1];
const file = JSON.parse(DOCUMENTED ?? '') as { roles: object[] };
const parse = (change: object) => parseDeploymentFile(JSON.stringify({ ...file, ...change }));
const web = file.roles[1];

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
    ['two roles that serve', { roles: [web, { ...web, role: 'api' }] }, 'only one role can serve hostnames'],
    ['a hostname twice', { hostnames: ['a.example.com', 'a.example.com'] }, 'a hostname is named twice'],
    [
      'members of an open environment',
      { environment: { sealed: false, members: ['app-1'] } },
      'members belong to a sealed environment',
    ],
  ])('%s: one line that says where', (_, change, problem) => expect(parse(change)).toEqual({ ok: false, problem }));

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
