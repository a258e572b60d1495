import { describe, expect, test } from 'vitest';
import { chainHash, eventId, GENESIS_HASH } from '../../src/log/chain.ts';

// Both computed with coreutils: (printf %s PREVIOUS | xxd -r -p; printf %s BODY) | sha256sum
const FIRST = '6214d1a6076b3a6c0bffa73864a0c21725a76255914b0f3f9d640f608aa7c306';
const SECOND = 'c5ba019cd8341afd3a76ee8e8cb85b03a56c314194f35f3c7f517594d9df5f58';

describe('the hash chain', () => {
  test('before the first event: 32 zero bytes', () => expect(GENESIS_HASH).toBe('0'.repeat(64)));

  test('first event: as sha256sum says of 32 zero bytes and the UTF-8 bytes', () =>
    expect(chainHash(GENESIS_HASH, '{"text":"Grüße"}')).toBe(FIRST));

  test('second event: as sha256sum says of the raw bytes of the first hash and its own', () =>
    expect(chainHash(FIRST, '{}')).toBe(SECOND));

  test('the same JSON in other bytes: another hash', () => expect(chainHash(FIRST, '{ }')).not.toBe(SECOND));
});

describe("an event's id", () => {
  test('a UUID of version 8 and variant 10 made from the hash', () =>
    expect(eventId(FIRST)).toBe('6214d1a6-076b-8a6c-8bff-a73864a0c217'));

  test.each('0123456789abcdef'.split(''))(
    'hash with %s at the places of version and variant: still 8 and 10',
    (digit) =>
      expect(eventId(digit.repeat(64))).toMatch(
        /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      ),
  );

  test('another hash: another id', () => expect(eventId(SECOND)).not.toBe(eventId(FIRST)));
});
