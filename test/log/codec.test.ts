import { describe, expect, test } from 'vitest';
import type { NewEvent } from '../../src/domain/event/catalogue.ts';
import { nodeStream } from '../../src/domain/stream.ts';
import { chainHash, GENESIS_HASH } from '../../src/log/chain.ts';
import { MAX_COMMAND_BYTES, MAX_EVENT_BYTES, seal, unseal } from '../../src/log/codec.ts';
import { LogFormatError } from '../../src/log/event-log.ts';
import { digest, make, NODE, pem, START, sample } from '../support/events.ts';
import { METADATA } from '../support/given.ts';

const HEAD = { position: 41, hash: digest('41'), at: START };
const admitted: NewEvent = { stream: nodeStream(NODE), event: sample.node_admitted };
const BODY =
  `{"at":${START},"data":{"node_id":"${NODE}"},` +
  `"metadata":{"actor":{"client_address":null,"database_user":"pushleft_operator","id":"ada@ops","kind":"operator"},` +
  `"command_id":"${METADATA.command_id}","correlation_id":"${METADATA.correlation_id}","epoch":1,"program_version":"0.1.0"},` +
  `"stream":"node-${NODE}","type":"node_admitted","version":1}`;

/** `count` serial numbers: 35 bytes each in an event's body. */
const serials = (count: number) => Array.from({ length: count }, (_, index) => index.toString(16).padStart(32, '0'));

/** Metadata that makes the body of `admitted` so many bytes. */
function metadataFor(bytes: number) {
  return { ...METADATA, actor: { ...METADATA.actor, id: 'x'.repeat(bytes - BODY.length + 'ada@ops'.length) } };
}

describe('an event is sealed', () => {
  test('canonical JSON, keys in order, chained to the head, next position', () =>
    expect(seal(HEAD, [admitted], METADATA, START)).toEqual([
      {
        body: BODY,
        hash: chainHash(HEAD.hash, BODY),
        event: { position: 42, stream: `node-${NODE}`, at: START, metadata: METADATA, ...sample.node_admitted },
      },
    ]));

  test('two: the second follows the first', () => {
    const [first, second] = seal(HEAD, [admitted, admitted], METADATA, START);
    expect(second?.event.position).toBe(43);
    expect(second?.hash).toBe(chainHash(first?.hash ?? '', BODY));
  });

  test('none: nothing', () => expect(seal(HEAD, [], METADATA, START)).toEqual([]));

  test('a field too many: refused, says where', () => {
    const data = { ...sample.node_admitted.data, note: 'free text' };
    const event = { type: 'node_admitted', data } as const;
    expect(() => seal(HEAD, [{ ...admitted, event }], METADATA, START)).toThrow(
      new LogFormatError('node_admitted: × Invalid key: Expected never but received "note"\n  → at note'),
    );
  });

  test('a value outside its schema: refused, says where', () => {
    const event = make('node_server_requested', { server_id: 0 });
    expect(() => seal(HEAD, [{ ...admitted, event }], METADATA, START)).toThrow(LogFormatError);
    expect(() => seal(HEAD, [{ ...admitted, event }], METADATA, START)).toThrow('→ at server_id');
  });

  test('free text in the place of a digest: refused', () => {
    const event = make('node_enrollment_secret_armed', { secret_sha256: 'the secret itself' });
    expect(() => seal(HEAD, [{ ...admitted, event }], METADATA, START)).toThrow(LogFormatError);
  });

  test('the largest that schemas allow: fits', () => {
    const pemBase64 = 'M'.repeat(4096 - pem('').length);
    const largest = [
      { stream: nodeStream(NODE), event: make('certificates_revoked', { certificate_ids: serials(1000) }) },
      { stream: nodeStream(NODE), event: make('certificate_issued', { certificate_pem: pem(pemBase64) }) },
    ];
    expect(seal(HEAD, largest, METADATA, START).map(({ body }) => body.length < MAX_EVENT_BYTES)).toEqual([true, true]);
  });
});

describe('sizes are bounded', () => {
  const four = [admitted, admitted, admitted, admitted];

  test('limits: 256 KiB an event, 900 KiB a command', () =>
    expect([MAX_EVENT_BYTES, MAX_COMMAND_BYTES]).toEqual([262_144, 921_600]));

  test('an event of 256 KiB: sealed', () =>
    expect(seal(HEAD, [admitted], metadataFor(262_144), START)[0]?.body).toHaveLength(262_144));

  test('an event of one byte more: refused, says its size', () =>
    expect(() => seal(HEAD, [admitted], metadataFor(262_145), START)).toThrow(
      new LogFormatError('node_admitted has 262145 bytes, at most 262144'),
    ));

  test('bytes count, not characters', () => {
    const wide = { ...METADATA, actor: { ...METADATA.actor, id: 'ü'.repeat(131_072) } };
    expect(() => seal(HEAD, [admitted], wide, START)).toThrow(LogFormatError);
  });

  test('a command of 900 KiB: sealed', () => expect(seal(HEAD, four, metadataFor(230_400), START)).toHaveLength(4));

  test('a command of more, none of its events too large: refused', () =>
    expect(() => seal(HEAD, four, metadataFor(230_401), START)).toThrow(
      new LogFormatError("one command's events exceed 921600 bytes"),
    ));
});

describe('an event is read back', () => {
  test('what was sealed: the same event', () => {
    const [sealed] = seal(HEAD, [admitted], METADATA, START);
    expect(unseal(42, sealed?.body ?? '')).toEqual(sealed?.event);
  });

  test.each([
    ['not JSON', '{', 'position 7: Expected property name'],
    ['not an object', '[]', 'position 7: × Invalid'],
    ['a field of the envelope missing', BODY.replace(`"at":${START},`, ''), 'position 7: × Invalid key: Expected "at"'],
    ['a field of the envelope too many', BODY.replace('{"at"', '{"a":1,"at"'), 'position 7: × Invalid key'],
    ['an unknown type', BODY.replace('"node_admitted"', '"node_sold"'), 'position 7: unknown event type node_sold'],
    [
      'a name of every object',
      BODY.replace('"node_admitted"', '"toString"'),
      'position 7: unknown event type toString',
    ],
    ['a newer version', BODY.replace('"version":1', '"version":2'), 'position 7: version 2 is newer than this program'],
    ['a version that never was', BODY.replace('"version":1', '"version":0'), 'position 7: version 0 is unknown'],
    ['half a version', BODY.replace('"version":1', '"version":0.5'), 'position 7: version 0.5 is unknown'],
  ])('%s: refused, names the position', (_, body, message) => {
    expect(() => unseal(7, body)).toThrow(LogFormatError);
    expect(() => unseal(7, body)).toThrow(message);
  });

  test.each([
    ['an unknown type', BODY.replace('"node_admitted"', '"node_sold"'), 'newer_program'],
    ['a newer version', BODY.replace('"version":1', '"version":2'), 'newer_program'],
    ['a version that never was', BODY.replace('"version":1', '"version":0'), 'damaged'],
    ['a field of the envelope missing', BODY.replace(`"at":${START},`, ''), 'damaged'],
    ['not JSON', '{', 'damaged'],
  ])('%s: told apart whether a newer program could read it', (_, body, kind) =>
    expect(() => unseal(7, body)).toThrow(expect.objectContaining({ kind })),
  );
});

test('the first event of a log: chained to 32 zero bytes', () =>
  expect(seal({ position: 0, hash: GENESIS_HASH, at: 0 }, [admitted], METADATA, START)[0]).toMatchObject({
    hash: chainHash(GENESIS_HASH, BODY),
    event: { position: 1 },
  }));
