import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { catalogue, EVENT_TYPES, isEventType } from '../../src/domain/event/catalogue.ts';
import { seal, unseal } from '../../src/log/codec.ts';
import { sample } from '../support/events.ts';

/**
 * One file a type and version, with the very bytes that the log holds. Such a file is written once, when the version is new, and never
 * changed: logs are full of them. Every version tells the same event, so what it is read as today is the sample in test/support.
 */
const FOLDER = join(import.meta.dirname, '../golden/events');

const files = readdirSync(FOLDER).toSorted();
const bodyOf = (file: string) => readFileSync(join(FOLDER, file), 'utf8').trimEnd();

test('every type and version has its golden file, and no file is without one', () => {
  const versions = EVENT_TYPES.flatMap((type) => {
    const earlier = Object.keys(catalogue[type].earlier);
    return [...earlier, catalogue[type].version].map((version) => `${type}.v${version}.json`);
  });
  expect(files).toEqual(versions.toSorted());
});

describe.each(files)('%s', (file) => {
  const [type = '', version] = /^(\w+)\.v(\d+)\.json$/.exec(file)?.slice(1) ?? [];
  const body = bodyOf(file);
  const event = unseal(1, body);

  test('its bytes: name its type and version', () =>
    expect(JSON.parse(body)).toMatchObject({ type, version: Number(version) }));

  test("read today: the sample, accepted by today's schema", () => {
    if (!isEventType(type)) throw new Error(`${type} is no event type`);
    expect({ type: event.type, data: event.data }).toEqual(sample[type]);
    expect(v.safeParse(catalogue[type].data, event.data).success).toBe(true);
  });

  test("of today's version: sealed again, the same bytes", () => {
    if (!isEventType(type) || Number(version) !== catalogue[type].version) return;
    const head = { position: 0, hash: '0'.repeat(64), at: 0 };
    const [again] = seal(head, [{ stream: event.stream, event: sample[type] }], event.metadata, event.at);
    expect(again?.body).toBe(body);
  });
});
