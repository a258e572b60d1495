import type { CertificateState } from '../certificate/state.ts';
import type { NodeState } from '../node/state.ts';
import type { CaState, GatewayBeacon } from './state.ts';

/** What has to be looked at before a rotation is completed. */
export interface RotationWitnesses {
  readonly ca: CaState | undefined;
  /** Every node that is not retired. */
  readonly nodes: readonly NodeState[];
  /** Every certificate that is not revoked. */
  readonly certificates: readonly CertificateState[];
  readonly gateways: readonly GatewayBeacon[];
}
