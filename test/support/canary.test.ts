import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CanaryScanner, type Form } from './canary.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { temporaryDirectory } from './temporary-directory.ts';

const token = `hcloud-${randomBytes(16).toString('hex')}`;
const key = randomBytes(32);
const secrets = { token, key };
const scanner = new CanaryScanner(secrets);
const place = 'here';

/** Base64 with `before` bytes ahead of the secret and some behind it. */
const inBase64 = (secret: string | Buffer, before: number) =>
  Buffer.concat([Buffer.from('abc').subarray(0, before), Buffer.from(secret), Buffer.from('tail')]).toString('base64');
const urlSafe = (base64: string) => base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

describe.each(Object.entries(secrets))('a planted %s', (name, secret) => {
  const hex = Buffer.from(secret).toString('hex');

  test.each<[string, Form, string | Buffer]>([
    ['as it is', 'plain', Buffer.from(secret)],
    ['amid other bytes', 'plain', Buffer.concat([Buffer.from('{"a":"'), Buffer.from(secret), Buffer.from('"}')])],
    ['hex', 'hex', `x=${hex}`],
    ['HEX', 'hex', `x=${hex.toUpperCase()}`],
    ['hex with colons', 'hex', hex.replaceAll(/(..)(?!$)/g, '$1:')],
    ['base64', 'base64', Buffer.from(secret).toString('base64')],
    ['base64, nothing before', 'base64', inBase64(secret, 0)],
    ['base64, one byte before', 'base64', inBase64(secret, 1)],
    ['base64, two bytes before', 'base64', inBase64(secret, 2)],
    ['base64, three bytes before', 'base64', inBase64(secret, 3)],
    ['base64url', 'base64', urlSafe(inBase64(secret, 0))],
    ['base64url, one byte before', 'base64', urlSafe(inBase64(secret, 1))],
    ['base64url, two bytes before', 'base64', urlSafe(inBase64(secret, 2))],
    ['base64 in lines', 'base64', inBase64(secret, 1).replaceAll(/.{20}/g, '$&\n')],
    ['base64 in lines inside JSON', 'base64', JSON.stringify(inBase64(secret, 2).replaceAll(/.{20}/g, '$&\r\n'))],
  ])('%s: found', (_, form, content) => expect(scanner.scan(content, place)).toEqual([{ secret: name, form, place }]));

  test('its first half: not found', () =>
    expect(scanner.scan(Buffer.from(secret).subarray(0, Buffer.from(secret).length / 2), place)).toEqual([]));

  test('with its first bit flipped: not found', () => {
    const almost = Buffer.from(secret);
    almost[0] = (almost[0] ?? 0) ^ 0x80;
    for (const content of [almost, almost.toString('hex'), almost.toString('base64')]) {
      expect(scanner.scan(content, place)).toEqual([]);
    }
  });
});

describe('other contents', () => {
  test('no secret in it: nothing', () => expect(scanner.scan('{"token":"[redacted]"}', place)).toEqual([]));

  test('random bytes, their hex and base64: nothing', () => {
    const noise = randomBytes(1 << 20);
    for (const content of [noise, noise.toString('hex'), noise.toString('base64')]) {
      expect(scanner.scan(content, place)).toEqual([]);
    }
  });

  test('two secrets in two forms: both, by their names', () =>
    expect(scanner.scan(`${token} ${key.toString('hex')} ${token}`, place)).toEqual([
      { secret: 'token', form: 'plain', place },
      { secret: 'key', form: 'hex', place },
    ]));
});

describe('a secret of several lines', () => {
  const lines = [randomBytes(48).toString('base64'), randomBytes(48).toString('base64')];
  const pem = `-----BEGIN PRIVATE KEY-----\n${lines.join('\n')}\n-----END PRIVATE KEY-----\n`;
  const pemScanner = new CanaryScanner({ pem });
  const found = [{ secret: 'pem', form: 'plain', place }];

  test('whole: found', () => expect(pemScanner.scan(pem, place)).toEqual(found));
  test('inside JSON: found', () => expect(pemScanner.scan(JSON.stringify({ pem }), place)).toEqual(found));
  test('one of its lines: found', () => expect(pemScanner.scan(`key ${lines[1]}`, place)).toEqual(found));
  test("another key's armour: not found", () =>
    expect(pemScanner.scan('-----BEGIN PRIVATE KEY-----\n', place)).toEqual([]));
});

test('a secret too short to be told from chance: refused', () =>
  expect(() => new CanaryScanner({ pin: '1234' })).toThrow('pin is shorter than 16 bytes'));

describe('files', () => {
  test('in a sub-folder, a hidden file, a name: each found, with its path', async () => {
    await using folder = await temporaryDirectory();
    await mkdir(join(folder.path, 'a/b'), { recursive: true });
    const paths = { deep: join(folder.path, 'a/b/log.txt'), hidden: join(folder.path, '.state') };
    const named = join(folder.path, `${key.toString('hex')}.json`);
    await writeFile(paths.deep, `level=info token=${token}`);
    await writeFile(paths.hidden, inBase64(key, 1));
    await writeFile(named, '{}');
    await writeFile(join(folder.path, 'innocent'), 'nothing');
    const found = await scanner.scanDirectory(folder.path);
    expect(found.toSorted((a, b) => a.place.localeCompare(b.place, 'en'))).toEqual(
      [
        { secret: 'token', form: 'plain', place: paths.deep },
        { secret: 'key', form: 'base64', place: paths.hidden },
        { secret: 'key', form: 'hex', place: named },
      ].toSorted((a, b) => a.place.localeCompare(b.place, 'en')),
    );
  });

  test('skipped: not found', async () => {
    await using folder = await temporaryDirectory();
    await writeFile(join(folder.path, 'token'), token);
    expect(await scanner.scanDirectory(folder.path, (path) => path.endsWith('/token'))).toEqual([]);
  });
});

describe('a database', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
    await database.pool.query(`
      CREATE SCHEMA "Odd schema";
      CREATE TABLE "Odd schema"."Odd table" (
        id int, "Some text" text, short varchar(200), doc json, docb jsonb, raw bytea, list text[], at timestamptz
      )`);
  });
  afterAll(() => database.drop());

  const table = '"Odd schema"."Odd table"';

  test('migrated and empty: nothing', async () => expect(await scanner.scanDatabase(database.pool)).toEqual([]));

  test.each<[string, Form, unknown]>([
    ['"Some text"', 'plain', `Bearer ${token}`],
    ['short', 'hex', Buffer.from(token).toString('hex').toUpperCase()],
    ['doc', 'base64', JSON.stringify({ deep: [{ user_data: inBase64(token, 2) }] })],
    ['docb', 'plain', JSON.stringify({ deep: [token] })],
    ['raw', 'plain', Buffer.from(token)],
    ['raw', 'base64', Buffer.from(inBase64(token, 1))],
    ['list', 'plain', ['innocent', token]],
  ])('column %s, %s: found, and only there', async (column, form, value) => {
    await database.pool.query(`INSERT INTO ${table} (id, ${column}) VALUES (1, $1)`, [value]);
    const place = `${table}.${column}`;
    expect(await scanner.scanDatabase(database.pool)).toEqual([{ secret: 'token', form, place }]);
    await database.pool.query(`TRUNCATE ${table}`);
  });

  test('an erasable body of a job: found', async () => {
    await database.pool.query(`INSERT INTO telemetry.bodies VALUES ('j', 'payload', 'x', $1)`, [token]);
    expect(await scanner.scanDatabase(database.pool)).toEqual([
      { secret: 'token', form: 'plain', place: 'telemetry.bodies.body' },
    ]);
  });
});
