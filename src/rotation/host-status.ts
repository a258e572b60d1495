import type { CaState } from '../domain/ca/state.ts';
import type { PkiPaths } from '../pki/files.ts';
import { loadPki, type PkiProblem, type PkiSet } from '../pki/pki-set.ts';

/** What one host's PKI files hold, as a gateway would load them now. */
export interface HostStatus {
  /** Where its CA's certificate lies: which files these are. */
  readonly path: string;
  readonly pki: PkiSet | undefined;
  /** Why a gateway would not take them. */
  readonly problem: PkiProblem | undefined;
  /** Whether they are where the log says: whom they trust, that they can issue, by whom the gateway's certificate is. */
  readonly inStep: boolean;
}

/** Looks at a host's files beside what the log says. Changes nothing. */
export async function readHostStatus(paths: PkiPaths, ca: CaState | undefined, nowMs: number): Promise<HostStatus> {
  const loading = await loadPki(paths, nowMs);
  const pki = loading.ok ? loading.pki : undefined;
  const problem = loading.ok ? undefined : loading.problem;
  return { path: paths.caCert, pki, problem, inStep: ca !== undefined && pki !== undefined && isInStep(pki, ca) };
}

function isInStep({ trustedCaSha256s, signers, serving }: PkiSet, ca: CaState): boolean {
  const trusted = new Set(ca.trusted.map(({ sha256 }) => sha256));
  const sameTrust = trusted.size === trustedCaSha256s.length && trustedCaSha256s.every((sha256) => trusted.has(sha256));
  return sameTrust && signers.has(ca.issuing_ca_sha256) && serving.issuerCaSha256 === ca.current_ca_sha256;
}
