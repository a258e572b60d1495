import * as v from 'valibot';

/** Ids of nodes and jobs: RFC 9562 UUIDs in lower case. */
export const uuid = v.pipe(v.string(), v.regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/));
/** SHA-256 digests and certificate fingerprints: 64 lower-case hex digits. */
export const sha256Hex = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));
/** Points in time: whole milliseconds since the UNIX epoch. */
export const instantMs = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
/** Counts and sizes. */
export const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
/** Provider ids of servers and firewalls. */
export const providerId = v.pipe(v.number(), v.safeInteger(), v.minValue(1));
/** Names that end up as host names: RFC 1123 labels in lower case, at most 63. */
export const hostLabel = v.pipe(v.string(), v.regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/));
/** Provider slugs: location, server type, image, placement group. */
export const slug = v.pipe(v.string(), v.regex(/^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/));
/** Version and kernel tokens from hosts: one bounded word of a fixed alphabet, so that no free text gets into an event. */
export const versionToken = v.pipe(v.string(), v.regex(/^[A-Za-z0-9][A-Za-z0-9.+~_:-]{0,63}$/));
/** Kinds of jobs. */
export const jobKind = v.pipe(v.string(), v.regex(/^[a-z][a-z_]{1,40}$/));
/** Serial numbers of certificates in hex. */
export const serialHex = v.pipe(v.string(), v.regex(/^[0-9a-f]{16,40}$/));
/** Base64 of a DER-encoded SubjectPublicKeyInfo (91 bytes for P-256). */
export const spkiBase64 = v.pipe(v.string(), v.base64(), v.maxLength(256));
/** A certificate in PEM. */
export const certificatePem = v.pipe(
  v.string(),
  v.maxLength(4096),
  v.regex(/^-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----\n$/),
);
/** The pools of nodes. */
export const pool = v.picklist(['build', 'application', 'database']);
/** One of the pools. */
export type Pool = v.InferOutput<typeof pool>;
/** The pools in the order in which they are listed. */
export const POOLS: readonly Pool[] = pool.options;
