import fc from 'fast-check';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { boundedText, pemText, toBoundedText } from '../../src/protocol/text.ts';

const accepts = (maxLength: number, text: unknown) => v.is(boundedText(maxLength), text);

describe('boundedText', () => {
  test.each(['a', 'Ubuntu 24.04 – Größe', '🦆', 'a'.repeat(8)])('%j: accepted', (text) =>
    expect(accepts(20, text)).toBe(true),
  );

  test.each([
    ['empty', ''],
    ['too long', 'a'.repeat(21)],
    ['NUL', 'a\u0000b'],
    ['a line end', 'a\nb'],
    ['an escape sequence', '\u001B[2J'],
    ['DEL', '\u007F'],
    ['C1', '\u009B'],
    ['a lone high surrogate', '\uD83E'],
    ['a lone low surrogate', '\uDD86x'],
    ['not text', 7],
  ])('%s: refused', (_, text) => expect(accepts(20, text)).toBe(false));
});

describe('toBoundedText', () => {
  test('any text: null, or text that boundedText accepts', () =>
    fc.assert(
      fc.property(
        fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)) }),
        fc.integer({ min: 1, max: 12 }),
        (text, maxLength) => {
          const made = toBoundedText(text, maxLength);
          return made === null || accepts(maxLength, made);
        },
      ),
    ));

  test('a cut between the halves of a pair: the half is dropped', () => expect(toBoundedText('ab🦆', 3)).toBe('ab'));
  test('nothing left: null', () => expect(toBoundedText('\n\u0000', 9)).toBe(null));
  test('line ends and NUL: spaces', () => expect(toBoundedText('a\nb\u0000c\n', 9)).toBe('a b c'));
});

describe('pemText', () => {
  const pem = '-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n';
  test('a PEM block: accepted', () => expect(v.is(pemText(200), pem)).toBe(true));
  test.each([
    ['NUL inside', pem.replace('MIIB', 'MI\u0000B')],
    ['too long', pem.replace('MIIB', 'M'.repeat(200))],
    ['something before it', ` ${pem}`],
    ['empty', ''],
  ])('%s: refused', (_, text) => expect(v.is(pemText(200), text)).toBe(false));
});
