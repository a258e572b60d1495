import { Flags } from '@oclif/core';
import { initialize } from '../../../../src/rotation/initialize.ts';
import { GATEWAY_COMMON_NAME } from '../../../../src/rotation/sign-gateway.ts';
import { CaCommand } from '../../../rotation.ts';

/** `fleet ca init`: makes the fleet's first CA, or takes the one that is there, and records it. */
export default class FleetCaInit extends CaCommand {
  static override summary = "Make the fleet's CA known to the log; make the files that are missing.";
  static override description =
    'Run it once on the first gateway’s host, with the variables of the gateway. Files that are there are never overwritten. --dns and --ip are the ' +
    'names in a gateway certificate that has to be made, and make what else is missing.';
  static override examples = [
    '<%= config.bin %> fleet ca init --dns gateway.example --ip 203.0.113.5',
    '<%= config.bin %> fleet ca init',
  ];
  static override flags = {
    dns: Flags.string({ summary: 'DNS name of the gateway.', multiple: true, default: [] }),
    ip: Flags.string({ summary: 'IP address of the gateway.', multiple: true, default: [] }),
  };

  async run() {
    const { flags } = await this.parse(FleetCaInit);
    const names = { commonName: GATEWAY_COMMON_NAME, dnsNames: flags.dns, ipAddresses: flags.ip };
    const given = flags.dns.length + flags.ip.length > 0;
    return this.runPhase(flags, (ports) => initialize(ports, given ? names : undefined));
  }
}
