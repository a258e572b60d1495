import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import type { CaState } from '../domain/ca/state.ts';
import { CloudInitValues } from '../hetzner/cloud-init/values.ts';
import { parseBundle } from '../pki/bundle.ts';
import { sha256Hex } from '../pki/certificate.ts';
import { done, type StepResult, stop } from './outcome.ts';

/** The CAs by which a host that is about to enrol believes the gateway. */
export interface CaBundle {
  readonly pem: string;
  /** Fingerprints of the CAs in it. */
  readonly caSha256s: readonly string[];
  /** The file it was read from; null: it is what the log trusts. */
  readonly file: string | null;
  /** CAs that the log trusts and the file lacks. */
  readonly lacking: readonly string[];
}

/** Reads the bundle anew each time, because a rotation may have begun or ended since the last. */
export type CaBundleReader = () => Promise<StepResult<CaBundle>>;

const CA_FILE_MAX_BYTES = 65_536;
const { gatewayCaPem } = CloudInitValues.entries;

/**
 * Takes the bundle from the operator's file where one is set, else from the log: every CA that the fleet trusts, two during a rotation.
 * Refuses: ca_file_unusable, ca_not_initialized (neither file nor log has one).
 */
export function caBundleReader(file: string | null, readCa: () => Promise<CaState | undefined>): CaBundleReader {
  return async () => {
    const trusted = (await readCa())?.trusted ?? [];
    if (file !== null) return fromFile(file, trusted);
    if (trusted.length === 0) {
      return stop(
        'ca_not_initialized',
        "there is no CA by which a host could believe the gateway: the log does not know the fleet's, and PUSHLEFT_FLEET_GATEWAY_CA_FILE is not set",
        "run `pushleft-controller fleet ca init` on the gateway's host, or set PUSHLEFT_FLEET_GATEWAY_CA_FILE",
      );
    }
    return done({
      pem: trusted.map(({ pem }) => `${pem.trim()}\n`).join(''),
      caSha256s: trusted.map(({ sha256 }) => sha256),
      file: null,
      lacking: [],
    });
  };
}

/** The PEM of the operator's file, or what is wrong with it, to be put behind the variable's name. */
export function readCaFile(
  path: string,
): { readonly ok: true; readonly pem: string } | { readonly ok: false; readonly problem: string } {
  let pem: string;
  try {
    pem = readFileSync(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    return { ok: false, problem: `names a file that cannot be read (${code})` };
  }
  if (pem.length > CA_FILE_MAX_BYTES) {
    return { ok: false, problem: `names a file of more than ${CA_FILE_MAX_BYTES} bytes` };
  }
  const checked = v.safeParse(gatewayCaPem, pem, { abortEarly: true });
  return checked.success ? { ok: true, pem } : { ok: false, problem: `names a file that ${checked.issues[0].message}` };
}

/** Says where a bundle is from, and loudly what it lacks. */
export function caBundleLines({ file, caSha256s, lacking }: CaBundle): string[] {
  const count = caSha256s.length === 1 ? '1 CA' : `${caSha256s.length} CAs`;
  return [
    `CA bundle: ${count} from ${file ?? 'the log'}`,
    ...lacking.map(
      (sha256) =>
        `WARNING: ${file} lacks the CA ${sha256.slice(0, 16)}… that the fleet trusts: a host that is told this bundle will not believe a ` +
        'gateway of that CA, and no rotation to it completes before the secret has ended; unset PUSHLEFT_FLEET_GATEWAY_CA_FILE to have ' +
        'the bundle from the log',
    ),
  ];
}

function fromFile(file: string, trusted: CaState['trusted']): StepResult<CaBundle> {
  const read = readCaFile(file);
  if (!read.ok) return stop('ca_file_unusable', `PUSHLEFT_FLEET_GATEWAY_CA_FILE ${read.problem}`);
  const caSha256s = (parseBundle(read.pem) ?? []).map((ca) => sha256Hex(ca.raw));
  const lacking = trusted.flatMap(({ sha256 }) => (caSha256s.includes(sha256) ? [] : [sha256]));
  return done({ pem: read.pem, caSha256s, file, lacking });
}
