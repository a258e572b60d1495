import * as v from 'valibot';
import { liveGateways } from '../domain/ca/rotate.ts';
import type { ProgramRow } from './database.ts';

const Fingerprint = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));
const Moment = v.pipe(v.string(), v.isoTimestamp(), v.transform(Date.parse));

/** What a gateway's beacon says of its PKI files. Times are ms. */
const GatewayPki = v.object({
  trusted_ca_sha256s: v.array(Fingerprint),
  issuer_ca_sha256: Fingerprint,
  previous_issuer_ca_sha256: v.nullable(Fingerprint),
  serving: v.object({
    fingerprint_sha256: Fingerprint,
    issuer_ca_sha256: Fingerprint,
    not_before: Moment,
    not_after: Moment,
  }),
  loaded_at: Moment,
  error: v.nullable(v.object({ code: v.string(), message: v.string(), since: Moment })),
});
/** What a gateway's beacon says of its PKI files. Times are ms. */
export type GatewayPki = v.InferOutput<typeof GatewayPki>;

/** Reads that part of a beacon's details; undefined where a gateway of another version says it otherwise, or not at all. */
export function readGatewayPki(details: unknown): GatewayPki | undefined {
  const read = v.safeParse(v.object({ pki: GatewayPki }), details);
  return read.success ? read.output.pki : undefined;
}

/** A gateway that is alive, and what it says of its PKI files. */
export interface LiveGatewayPki {
  readonly program: string;
  readonly pki: GatewayPki | undefined;
}

/** The gateways among programs that are alive at a moment (ms, of the database's clock). */
export function liveGatewayPkis(programs: readonly ProgramRow[], nowMs: number): LiveGatewayPki[] {
  return liveGateways(programs, nowMs).map(({ program, details }) => ({ program, pki: readGatewayPki(details) }));
}
