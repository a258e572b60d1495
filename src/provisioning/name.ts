import * as v from 'valibot';
import { hostLabel, type Pool } from '../domain/fields.ts';

/** RFC 4648 base32 in lower case: it has no 0 and no 1, which look like o and l at a terminal. */
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';
const SUFFIX_LENGTH = 4;

const poolPrefixes = { application: 'app', build: 'build', database: 'db' } as const satisfies Record<Pool, string>;

/** A readable name, `<app|build|db>-<region>-<4 characters>`: one in a million. Whoever gets it checks that it is free. */
export function generateNodeName(pool: Pool, region: string, randomBytes: (size: number) => Buffer): string {
  const suffix = [...randomBytes(SUFFIX_LENGTH)].map((byte) => BASE32[byte % BASE32.length]).join('');
  return `${poolPrefixes[pool]}-${region}-${suffix}`;
}

/** Whether a text can be the name of a host (RFC 1123 label in lower case, at most 63 characters). */
export function isNodeName(text: string): boolean {
  return v.is(hostLabel, text);
}
