import type { NodeState } from '../domain/node/state.ts';
import type { HetznerApi, HetznerClock } from '../hetzner/api.ts';
import type { HetznerLog } from '../hetzner/transport.ts';
import type { AppendedEvent, CommandDefinition, CommandOutcome } from '../transactor/command.ts';
import type { CaBundleReader } from './ca-bundle.ts';
import type { ProvisioningSettings } from './config.ts';
import type { NodeLocker } from './node-lock.ts';

/** How long provisioning waits, in ms: between looks at provider and table, and for the provider at most. */
interface ProvisioningWaits {
  readonly providerPollMs: number;
  readonly providerTimeoutMs: number;
  readonly enrollmentPollMs: number;
}

/** Everything that provisioning touches, so that a test can decorate every exchange and append, and cut there. */
export interface ProvisioningPorts {
  /** What is rendered into user-data and firewall rules. */
  readonly settings: Pick<
    ProvisioningSettings,
    | 'sshKeys'
    | 'operatorCidrs'
    | 'gatewayUrl'
    | 'enrollUrl'
    | 'releaseUrl'
    | 'releasePublicKey'
    | 'agentVersion'
    | 'secretTtlMs'
  >;
  /** The CAs that a new host is told, as they are when its user-data is rendered. */
  readonly readCaBundle: CaBundleReader;
  readonly waits: ProvisioningWaits;
  readonly clock: HetznerClock;
  readonly randomBytes: (size: number) => Buffer;
  /** The provider's API; every exchange ends when the signal aborts. */
  readonly hetzner: (run: { readonly signal: AbortSignal; readonly log: HetznerLog }) => HetznerApi;
  /** Gives a command in the operator's name. */
  readonly execute: <C, S>(definition: CommandDefinition<C, S>, command: C) => Promise<CommandOutcome>;
  readonly readNode: (nodeId: string) => Promise<NodeState | undefined>;
  readonly lockNode: NodeLocker;
}

/** What a run is about to do, for people, or (with `events`) what it has appended. */
export interface ProvisionProgress {
  readonly step:
    | 'validate'
    | 'request'
    | 'firewall'
    | 'capacity'
    | 'secret'
    | 'server'
    | 'running'
    | 'enrollment'
    | 'delete'
    | 'provider';
  readonly nodeId: string;
  readonly message: string;
  readonly events: readonly AppendedEvent[];
}

/** How a run is watched and stopped. `wait: false` ends it, in good order, when only the enrolment is missing. */
export interface ProvisionOptions {
  readonly onProgress?: (progress: ProvisionProgress) => void;
  readonly signal?: AbortSignal;
  readonly wait?: boolean;
}
