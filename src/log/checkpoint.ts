import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import canonicalize from 'canonicalize';
import * as v from 'valibot';
import type { ChainPoint } from './prove.ts';

/** Comes before the signed JSON, so that a signature by the same key over anything else can never be taken for a checkpoint. */
const CONTEXT = 'pushleft-log-checkpoint\n';
/** A checkpoint has about 450 bytes. */
export const MAX_CHECKPOINT_BYTES = 4_096;

const sha256Hex = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));
const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(1));

const statement = {
  /** Of this format. */
  version: v.literal(1),
  epoch: whole,
  position: whole,
  hash: sha256Hex,
  signed_at: v.pipe(v.string(), v.isoTimestamp()),
  key_sha256: sha256Hex,
};
const checkpoint = v.strictObject({ ...statement, signature: v.pipe(v.string(), v.base64(), v.length(88)) });

/**
 * An operator's word that the log had this hash at this position: kept outside the database, it shows that history was rewritten even
 * when the whole chain was computed anew. `key_sha256` names the key: SHA-256 of its DER SubjectPublicKeyInfo. `signature` is Ed25519
 * (RFC 8032) in base64 over "pushleft-log-checkpoint", a line break, and everything else as canonical JSON (RFC 8785).
 */
export type Checkpoint = v.InferOutput<typeof checkpoint>;

/** What is to be signed. */
export interface Head extends ChainPoint {
  readonly epoch: number;
}

/** Signs a point of the log with an Ed25519 private key. The time is ms. */
export function signCheckpoint({ epoch, position, hash }: Head, signedAt: number, key: KeyObject): Checkpoint {
  const unsigned = {
    version: 1,
    epoch,
    position,
    hash,
    signed_at: new Date(signedAt).toISOString(),
    key_sha256: keySha256(createPublicKey(key)),
  } as const;
  return { ...unsigned, signature: sign(null, signedBytes(unsigned), key).toString('base64') };
}

/** Why a checkpoint is not believed: it is none, another key signed it, or nobody did. */
export type CheckpointProblem = 'malformed' | 'other_key' | 'bad_signature';

/** Reads a checkpoint's text and checks its signature by an Ed25519 public key. */
export function readCheckpoint(text: string, publicKey: KeyObject): Checkpoint | CheckpointProblem {
  const read = v.safeParse(checkpoint, parseJson(text));
  if (!read.success) return 'malformed';
  const { signature, ...unsigned } = read.output;
  if (unsigned.key_sha256 !== keySha256(publicKey)) return 'other_key';
  return verify(null, signedBytes(unsigned), publicKey, Buffer.from(signature, 'base64'))
    ? read.output
    : 'bad_signature';
}

/** A checkpoint as a file holds it. */
export function checkpointText(signed: Checkpoint): string {
  return `${JSON.stringify(signed, null, 2)}\n`;
}

/** Names a public key: SHA-256 of its DER SubjectPublicKeyInfo, in hex. */
export function keySha256(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex');
}

function signedBytes(unsigned: Omit<Checkpoint, 'signature'>): Buffer {
  return Buffer.from(`${CONTEXT}${canonicalize(unsigned)}`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
