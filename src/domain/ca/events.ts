import * as v from 'valibot';
import { event, unchanged } from '../event/definition.ts';
import { certificatePem, instantMs, programName, serialHex, sha256Hex, uuid } from '../fields.ts';

const firstActions = ['begin', 'issue', 'complete', 'abort'] as const;
const firstRefusals = [
  'ca_rotation_running',
  'ca_files_differ',
  'ca_used_before',
  'ca_not_trusted_everywhere',
  'ca_rotation_blocked',
  'ca_rotation_not_issuing',
  'ca_rotation_too_large',
  'ca_has_issued',
] as const;

/** Why a host cannot take a step, because of its files. */
export const HOST_REFUSALS = ['ca_key_missing', 'gateway_certificate_unreadable', 'gateway_names_differ'] as const;
/** One of the reasons. */
export type HostRefusal = (typeof HOST_REFUSALS)[number];

/** What was refused: a step of a rotation, the first CA, a certificate for a gateway. */
const rotationAction = v.picklist([...firstActions, 'init', 'reissue']);

/** Why it was refused. */
const rotationRefusal = v.picklist([
  ...firstRefusals,
  'ca_no_rotation',
  'ca_rotation_unknown',
  'ca_already_initialized',
  'issuer_not_current',
  ...HOST_REFUSALS,
]);
/** One of the reasons. */
export type RotationRefusal = v.InferOutput<typeof rotationRefusal>;

/** Why a node keeps a rotation from being completed. */
const blockingReason = v.picklist([
  'never_renewed',
  'renewed_never_used',
  'no_certificate',
  'secret_without_new_ca',
  'enrolling',
]);
/** One of the reasons. */
export type BlockingReason = v.InferOutput<typeof blockingReason>;

/** How many blocking nodes and gateways an event names; the rest is counted by whoever asks again. */
export const MOST_NAMED = 1000;
/** How many certificates one completion can revoke: what fits into an event of 256 KiB. */
export const MOST_REVOKED = 6000;

const refusedStep = {
  rotation_id: v.nullable(uuid),
  blocking_node_ids: v.pipe(v.array(uuid), v.maxLength(MOST_NAMED)),
  /** One for each of the nodes, in their order. */
  blocking_reasons: v.pipe(v.array(blockingReason), v.maxLength(MOST_NAMED)),
  blocking_gateways: v.pipe(v.array(programName), v.maxLength(MOST_NAMED)),
};

/**
 * Events of stream `ca-fleet`: who issues certificates, whom the fleet trusts. The public certificate is in the event, so that an auditor
 * can check signatures and a gateway's host can write its trust bundle from the log alone. Keys are in files, never here.
 */
export const caEvents = {
  ca_initialized: event(v.strictObject({ ca_sha256: sha256Hex, ca_pem: certificatePem, not_after: instantMs })),
  ca_rotation_begun: event(
    v.strictObject({
      rotation_id: uuid,
      previous_ca_sha256: sha256Hex,
      ca_sha256: sha256Hex,
      ca_pem: certificatePem,
      not_after: instantMs,
    }),
  ),
  ca_issuer_switched: event(
    v.strictObject({
      rotation_id: uuid,
      ca_sha256: sha256Hex,
      /** Those that were alive and said that they trust the CA. */
      gateways: v.pipe(v.array(programName), v.maxLength(MOST_NAMED)),
    }),
  ),
  ca_rotation_completed: event(
    v.strictObject({
      rotation_id: uuid,
      previous_ca_sha256: sha256Hex,
      ca_sha256: sha256Hex,
      revoked_certificate_ids: v.pipe(v.array(serialHex), v.maxLength(MOST_REVOKED)),
    }),
  ),
  ca_rotation_aborted: event(
    v.strictObject({ rotation_id: uuid, ca_sha256: sha256Hex, restored_ca_sha256: sha256Hex }),
  ),
  ca_rotation_refused: {
    version: 2,
    data: v.strictObject({ ...refusedStep, action: rotationAction, reason: rotationRefusal }),
    earlier: {
      1: {
        data: v.strictObject({ ...refusedStep, action: v.picklist(firstActions), reason: v.picklist(firstRefusals) }),
        upcast: unchanged,
      },
    },
  },
  gateway_certificate_issued: event(
    v.strictObject({
      certificate_id: serialHex,
      fingerprint: sha256Hex,
      issuer_ca_sha256: sha256Hex,
      not_before: instantMs,
      not_after: instantMs,
      certificate_pem: certificatePem,
      cause: v.picklist(['init', 'reissue', 'rotation']),
    }),
  ),
} as const;
