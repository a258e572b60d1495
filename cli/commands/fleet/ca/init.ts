import { Flags } from '@oclif/core';
import { ensurePki } from '../../../../src/pki/development-ca.ts';
import { stopped } from '../../../../src/rotation/outcome.ts';
import { initialize } from '../../../../src/rotation/phases.ts';
import { CaCommand } from '../../../rotation.ts';

/** `fleet ca init`: makes the fleet's first CA, or takes the one that is there, and records it. */
export default class FleetCaInit extends CaCommand {
  static override summary = "Make the fleet's CA known to the log; make the files that are missing.";
  static override description =
    'Run it once on the first gateway’s host, with the variables of the gateway. Files that are there are never overwritten. --dns and --ip are the ' +
    'names in a gateway certificate that has to be made.';
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
    const names = { dnsNames: flags.dns, ipAddresses: flags.ip };
    return this.runPhase(flags, async (ports) => {
      // While a new CA issues, the main files hold that one: a gateway certificate of it would cut off every agent that has not moved.
      const rotation_id = (await ports.readCa())?.rotation_id ?? null;
      if (rotation_id !== null) {
        return { kind: 'refused', refusal: { code: 'ca_rotation_running', details: { rotation_id } } };
      }
      if (flags.dns.length + flags.ip.length > 0) {
        const { caCert, caKey } = ports.files.paths;
        if ((await ports.files.read(caCert)) !== undefined && (await ports.files.read(caKey)) === undefined) {
          return stopped('ca_key_missing', `${caKey} is missing, and ${caCert} is of no use without it`);
        }
        await ensurePki(ports.files.paths, { ...names, now: ports.nowMs() });
      }
      return initialize(ports);
    });
  }
}
