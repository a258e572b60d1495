import { Flags } from '@oclif/core';
import { refused } from '../../../../src/rotation/outcome.ts';
import { settle } from '../../../../src/rotation/settle.ts';
import { CaCommand } from '../../../rotation.ts';

/** `fleet ca sync`: brings one host's PKI files to what the log says. */
export default class FleetCaSync extends CaCommand {
  static override summary = "Bring this host's PKI files to what the log says of the CA.";
  static override description =
    'For gateways with PKI files of their own, and for hosts that were restored. Public certificates come from the log; keys are never in the ' +
    'database: where this host lacks the key of a CA that may issue, carry it here and name its folder with --from.';
  static override examples = [
    '<%= config.bin %> fleet ca sync',
    '<%= config.bin %> fleet ca sync --from /root/ca-of-gateway-1',
  ];
  static override flags = {
    from: Flags.string({ summary: 'A folder with key files carried from another host.', helpValue: 'DIR' }),
  };

  async run() {
    const { flags } = await this.parse(FleetCaSync);
    return this.runPhase(flags, async (ports) => {
      const ca = await ports.readCa();
      if (ca === undefined) return refused('ca_not_initialized');
      return settle(ports, ca, flags.from);
    });
  }
}
