import { readGatewayConfig } from '../../src/gateway/config.ts';
import { startGateway } from '../../src/gateway/gateway.ts';
import { GatewayConfigurationError } from '../../src/gateway/listener.ts';
import { usageFailure } from '../failure.ts';
import { OperatorCommand } from '../operator-command.ts';
import { aborted, programLog } from '../program-log.ts';
import { untilStopped } from '../until-stopped.ts';

/** `gateway`: the listeners that agents talk to. */
export default class Gateway extends OperatorCommand {
  static override summary =
    'Run a gateway: the mTLS listener for agents, the enrolment listener, health and metrics on loopback.';
  static override description =
    'Configured by environment: PUSHLEFT_GATEWAY_BIND, PUSHLEFT_AGENT_ENROLL_BIND, PUSHLEFT_GATEWAY_ADMIN_BIND, PUSHLEFT_GATEWAY_CERT, ' +
    'PUSHLEFT_GATEWAY_KEY, PUSHLEFT_AGENT_CLIENT_CA, PUSHLEFT_AGENT_CA_CERT, PUSHLEFT_AGENT_CA_KEY and more (docs/configuration.md). ' +
    'Logs JSON lines; SIGTERM and Ctrl-C end it in order.';
  static override examples = ['DATABASE_URL=postgres://gateway@db/fleet <%= config.bin %> gateway'];
  static override enableJsonFlag = false;
  protected override readonly audience = 'gateway';

  async run() {
    const { flags } = await this.parse(Gateway);
    const { variables } = await this.environment(flags);
    const log = programLog('gateway', variables);
    const read = readGatewayConfig(variables, this.config.version);
    if (!read.ok) throw usageFailure(read.message);
    await untilStopped(async (signal) => {
      const gateway = await startGateway(read.config, { log }).catch((error: unknown) => {
        throw error instanceof GatewayConfigurationError ? usageFailure(error.message) : error;
      });
      await aborted(signal);
      log.info('the gateway stops');
      await gateway.close();
    });
  }
}
