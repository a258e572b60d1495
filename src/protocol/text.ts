import * as v from 'valibot';

/** C0, DEL and C1. PostgreSQL refuses NUL; the others forge lines in logs and terminals. */
// oxlint-disable-next-line eslint/no-control-regex -- control characters are what it looks for
const CONTROL_CHARACTERS = /[\u0000-\u001F\u007F-\u009F]/;

/** True for text that the database and a terminal can hold: well-formed UTF-16 without control characters. */
export function isPlainText(text: string): boolean {
  return text.isWellFormed() && !CONTROL_CHARACTERS.test(text);
}

/**
 * Schema of one line of text, at most `maxLength` UTF-16 code units.
 * Refuses NUL, lone surrogates, every control character, and the empty string.
 */
export function boundedText(maxLength: number) {
  return v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(maxLength),
    v.check(isPlainText, 'Contains a control character or a lone surrogate'),
  );
}

/** Schema of a whole number in `min..max`, both included. */
export function boundedInteger(min: number, max: number) {
  return v.pipe(v.number(), v.safeInteger(), v.minValue(min), v.maxValue(max));
}

/** Schema of printable ASCII and line ends, at most `maxLength` characters: what a PEM file may be made of. */
export function asciiLines(maxLength: number) {
  return v.pipe(v.string(), v.maxLength(maxLength), v.regex(/^[\x20-\x7E\r\n]*$/));
}

/** Schema of PEM text: printable ASCII and line ends, at most `maxLength` characters. What is inside is not looked at. */
export function pemText(maxLength: number) {
  return v.pipe(v.string(), v.maxLength(maxLength), v.regex(/^-----BEGIN [A-Z0-9 ]+-----[\x20-\x7E\r\n]+$/));
}

/**
 * Trims text of another program (a kernel's name, an error's message) so that `boundedText(maxLength)` accepts it.
 * Returns null when nothing is left.
 */
export function toBoundedText(text: string, maxLength: number): string | null {
  const plain = text
    .toWellFormed()
    // oxlint-disable-next-line eslint/no-control-regex -- control characters are what it looks for
    .replace(/[\u0000-\u001F\u007F-\u009F]+/g, ' ')
    .trim();
  const cut = plain.slice(0, maxLength);
  // The cut may fall between the two halves of a pair.
  const whole = cut.isWellFormed() ? cut : cut.slice(0, -1);
  return whole === '' ? null : whole;
}
