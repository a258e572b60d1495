import type { CaState, RotationState } from '../domain/ca/state.ts';
import type { LiveGatewayPki } from '../read/gateway-pki.ts';
import type { AppendedEvent, CommandDefinition, CommandOutcome } from '../transactor/command.ts';
import type { HostFiles } from './host-files.ts';

/** Everything that a rotation touches, so that a test can cut it at every file, event and look. */
export interface RotationPorts {
  readonly files: HostFiles;
  readonly nowMs: () => number;
  readonly pause: (ms: number) => Promise<void>;
  readonly execute: <C, S>(definition: CommandDefinition<C, S>, command: C) => Promise<CommandOutcome>;
  readonly readCa: () => Promise<CaState | undefined>;
  /** The rotation that was begun last. */
  readonly lastRotation: () => Promise<RotationState | undefined>;
  readonly liveGateways: () => Promise<readonly LiveGatewayPki[]>;
  /** Tells people what is being done, and which events that appended. */
  readonly say: (line: string, events?: readonly AppendedEvent[]) => void;
  readonly uuid: () => string;
}
