import { type Decision, refuse } from '../decision.ts';
import type { CaState } from './state.ts';

/**
 * Refuses (ca_bundle_outdated) a bundle that lacks the CA of the gateways' own certificates: its host would believe none of them. One that
 * was rendered before a rotation is good until that is completed, which waits for it; after that it comes too late. Where the log knows no CA
 * there is nothing to compare with.
 */
export function refuseOutdatedBundle(
  { ca_sha256s }: { readonly ca_sha256s: readonly string[] },
  ca: CaState | undefined,
): Decision | undefined {
  if (ca === undefined || ca_sha256s.includes(ca.current_ca_sha256)) return undefined;
  return refuse('ca_bundle_outdated', { ca_sha256: ca.current_ca_sha256 });
}
