import type { AgentConfig } from '../config.ts';
import type { Identity } from '../identity-store.ts';

/** What one check comes to. The detail is one line and names what to do when something is wrong. */
export interface Verdict {
  readonly status: 'pass' | 'warn' | 'fail';
  readonly detail: string;
}

/** Nothing to do. */
export const pass = (detail: string): Verdict => ({ status: 'pass', detail });
/** Works, but not for long or not well. */
export const warn = (detail: string): Verdict => ({ status: 'warn', detail });
/** The host cannot do its work like this. */
export const fail = (detail: string): Verdict => ({ status: 'fail', detail });

/** The staged identity, none, or why it cannot be read. */
export type FoundIdentity = Identity | { readonly problem: string } | undefined;

/** What asking the gateway for its health came to. */
export interface GatewayProbe {
  readonly health: Verdict;
  /** How far the local clock is ahead of the gateway's; null when the gateway named no time. */
  readonly clockAheadMs: number | null;
}

/** What all checks share. */
export interface CheckContext {
  readonly config: AgentConfig;
  readonly identity: FoundIdentity;
  /** Aborted when the time of all checks is over. */
  readonly signal: AbortSignal;
  /** Asks once, however many checks call it. */
  readonly gateway: () => Promise<GatewayProbe>;
}
