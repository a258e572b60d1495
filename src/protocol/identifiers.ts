import * as v from 'valibot';
import { LOG_HEAD_MAX_LENGTH } from './limits.ts';

/** What src/domain calls a uuid, for the agent, which holds no code of the domain. A test keeps the two equal. */
const Uuid = v.pipe(v.string(), v.regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/));

/** A node's id, which is also CN and SAN of its certificate. */
export const NodeId = Uuid;
/** Version of an agent, as in the release's file name. */
export const AgentVersion = v.pipe(v.string(), v.regex(/^[0-9A-Za-z](?:[0-9A-Za-z.+-]{0,62}[0-9A-Za-z])?$/));
/** Chosen by the agent for one lease request and kept until that request was answered. */
export const RequestId = Uuid;
/** Linux's /proc/sys/kernel/random/boot_id: another one after each boot. */
export const BootId = Uuid;
/** A job's id. */
export const JobId = Uuid;
/** The id of a deployment. */
export const DeploymentId = Uuid;
/** The id of a database. */
export const DatabaseId = Uuid;
/**
 * The id of an application's instance: its deployment, its role, its slot in the role and its generation in the slot. It follows from
 * what it stands for, so whoever asks twice for a replacement asks for the same one.
 */
export const InstanceId = v.pipe(
  v.string(),
  v.regex(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?\.\d{1,4}\.[1-9]\d{0,5}$/),
);
/** Name of a kind of job; open, because a node may know kinds that this program does not. */
export const KindName = v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_]{0,63}$/));
/** Proof of holding a lease: opaque to the agent, base64url or hex. */
export const LeaseToken = v.pipe(v.string(), v.regex(/^[0-9A-Za-z_-]{16,128}$/));
/** The one-time secret of an enrolment: 256 bits in lower-case hex. */
export const EnrollmentSecret = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));
/** SHA-256 in lower-case hex. */
export const Sha256Hex = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));
/** Sealed position of the log, opaque to the agent, which keeps the last one it was shown; DESIGN §5. */
export const LogHead = v.pipe(v.string(), v.maxLength(LOG_HEAD_MAX_LENGTH), v.regex(/^[\x21-\x7E]+$/));
/** Moment in UTC, ISO 8601, as `Date.prototype.toISOString` writes it. */
export const Timestamp = v.pipe(
  v.string(),
  v.regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?Z$/),
  v.isoTimestamp(),
);
