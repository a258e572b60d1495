import * as v from 'valibot';

// The descriptions are what docs/events.md says of each field.

/** Ids of nodes and jobs: RFC 9562 UUIDs in lower case. */
export const uuid = v.pipe(
  v.string(),
  v.regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/),
  v.description('UUID'),
);
/** Ids of instances: deployment, role, slot, generation. They follow from what they stand for (src/domain/workload/instance-id.ts). */
export const instanceId = v.pipe(
  v.string(),
  v.regex(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?\.\d{1,4}\.[1-9]\d{0,5}$/),
  v.description('instance: deployment.role.slot.generation'),
);
/** SHA-256 digests and certificate fingerprints: 64 lower-case hex digits. */
export const sha256Hex = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/), v.description('SHA-256 in hex'));
/** Points in time: whole milliseconds since the UNIX epoch. */
export const instantMs = v.pipe(
  v.number(),
  v.safeInteger(),
  v.minValue(0),
  v.description('point in time, ms since the UNIX epoch'),
);
/** Counts and sizes. */
export const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.description('whole number'));
/** Provider ids of servers and firewalls. */
export const providerId = v.pipe(
  v.number(),
  v.safeInteger(),
  v.minValue(1),
  v.description('id that the provider gave'),
);
/** Sizes of what a workload may use. */
export const cpuMillis = v.pipe(
  v.number(),
  v.safeInteger(),
  v.minValue(0),
  v.maxValue(1_024_000),
  v.description('thousandths of a CPU'),
);
/** See {@link cpuMillis}. */
export const memoryMb = v.pipe(
  v.number(),
  v.safeInteger(),
  v.minValue(0),
  v.maxValue(16_777_216),
  v.description('memory, MiB'),
);
/** See {@link cpuMillis}. */
export const diskGb = v.pipe(
  v.number(),
  v.safeInteger(),
  v.minValue(0),
  v.maxValue(16_777_216),
  v.description('disk, GiB'),
);
/** Generations count from 1. */
export const generation = v.pipe(
  v.number(),
  v.safeInteger(),
  v.minValue(1),
  v.maxValue(999_999),
  v.description('generation, from 1'),
);
/** A port of a host. */
export const port = v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(65_535), v.description('port'));
/** A name that HTTP requests are sent to: two labels at least, in lower case. */
export const hostname = v.pipe(
  v.string(),
  v.maxLength(253),
  v.regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+$/),
  v.description('hostname'),
);
/** A role of a deployment. */
export const roleName = v.pipe(
  v.string(),
  v.regex(/^[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?$/),
  v.description('role of a deployment'),
);
/** A reference to an image (src/protocol/workload.ts holds the same grammar for agents). */
export const imageReference = v.pipe(
  v.string(),
  v.maxLength(255),
  v.regex(/^[a-z0-9]+(?:[._:/-]+[a-zA-Z0-9_]+)*(?:@sha256:[0-9a-f]{64})?$/),
  v.description('image'),
);
/** What is run, word by word. */
export const commandLine = v.pipe(
  v.array(v.pipe(v.string(), v.regex(/^[\x20-\x7e]{1,512}$/), v.description('word of a command line'))),
  v.minLength(1),
  v.maxLength(32),
);
/** A path of HTTP. */
export const httpPath = v.pipe(v.string(), v.regex(/^\/[\x21-\x7e]{0,255}$/), v.description('path of HTTP'));
/** Allocations: what they are for, and of which kind. */
export const allocationId = v.pipe(
  v.string(),
  v.regex(/^[0-9a-z.-]{1,120}\/(?:role|network|database)$/),
  v.description('allocation: instance or database, and kind'),
);
/** Names that end up as host names: RFC 1123 labels in lower case, at most 63. */
export const hostLabel = v.pipe(
  v.string(),
  v.regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/),
  v.description('host label (RFC 1123)'),
);
/** Provider slugs: location, server type, image, placement group. */
export const slug = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$/),
  v.description('name at the provider'),
);
/** Version and kernel tokens from hosts: one bounded word of a fixed alphabet, so that no free text gets into an event. */
export const versionToken = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z0-9][A-Za-z0-9.+~_:-]{0,63}$/),
  v.description('version, one word'),
);
/** Kinds of jobs. */
export const jobKind = v.pipe(v.string(), v.regex(/^[a-z][a-z_]{1,40}$/), v.description('kind of job'));
/** Serial numbers of certificates in hex. */
export const serialHex = v.pipe(
  v.string(),
  v.regex(/^[0-9a-f]{16,40}$/),
  v.description('serial number of a certificate in hex'),
);
/** Base64 of a DER-encoded SubjectPublicKeyInfo (91 bytes for P-256). */
export const spkiBase64 = v.pipe(
  v.string(),
  v.base64(),
  v.maxLength(256),
  v.description('public key: base64 of its DER SubjectPublicKeyInfo'),
);
/** A certificate in PEM. */
export const certificatePem = v.pipe(
  v.string(),
  v.maxLength(4096),
  v.regex(/^-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----\n$/),
  v.description('certificate in PEM'),
);
/** IPv4 or IPv6 address. */
export const ipAddress = v.pipe(v.string(), v.ip(), v.description('IP address'));
/** How a running program names itself: kind@host:pid. */
export const programName = v.pipe(
  v.string(),
  v.regex(/^[\x21-\x7e]{1,255}$/),
  v.description('program: kind@host:process'),
);
/** The pools of nodes. */
export const pool = v.picklist(['build', 'application', 'database']);
/** One of the pools. */
export type Pool = v.InferOutput<typeof pool>;
/** The pools in the order in which they are listed. */
export const POOLS: readonly Pool[] = pool.options;
