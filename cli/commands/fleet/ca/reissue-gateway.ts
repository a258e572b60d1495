import { reissueGateway } from '../../../../src/rotation/phases.ts';
import { CaCommand } from '../../../rotation.ts';

/** `fleet ca reissue-gateway`: a new server certificate for the gateways of this host. */
export default class FleetCaReissueGateway extends CaCommand {
  static override summary = "Sign the gateway's server certificate anew: the same names, the same key, a new lifetime.";
  static override description =
    'Gateways take it within two seconds, without a restart. During a rotation it is signed by the CA that every agent trusts already.';
  static override examples = ['<%= config.bin %> fleet ca reissue-gateway'];

  async run() {
    const { flags } = await this.parse(FleetCaReissueGateway);
    return this.runPhase(flags, reissueGateway);
  }
}
