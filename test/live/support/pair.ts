import type { Host } from '../../e2e/support/program-fleet.ts';

/** A runtime and an ingress, as agents are told of them, and what a test does to a host that runs them. */
export interface Pair extends AsyncDisposable {
  /** Of hosts that run instances. */
  readonly workerEnv: Readonly<Record<string, string>>;
  /** Of the ingress host, whose ingress listens on this port. */
  readonly ingressEnv: (port: number) => Readonly<Record<string, string>>;
  /** The port of an ingress that runs already; undefined where the agent opens it. */
  readonly ingressPort: number | undefined;
  /** What a web role runs: it answers with its instance's id. */
  readonly web: { readonly image: string; readonly command: readonly string[] };
  /** Makes the host's instances hang, as those of a host that has lost its power do. */
  hang(host: Host): Promise<void>;
  /** Whether an instance is on the host, running or hanging. */
  isThere(host: Host): Promise<boolean>;
}
