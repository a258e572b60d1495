const TOKEN_MAX_LENGTH = 64;

/**
 * Text of a host (a kernel's release, Docker's version) as one word of the alphabet that events take: everything else becomes `_`.
 * Never empty.
 */
export function toVersionToken(text: string): string {
  const word = text.replaceAll(/[^A-Za-z0-9.+~_:-]+/g, '_').replace(/^[^A-Za-z0-9]+/, '');
  return word === '' ? 'unknown' : word.slice(0, TOKEN_MAX_LENGTH);
}
