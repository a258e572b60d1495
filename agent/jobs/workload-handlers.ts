import type { AgentConfig } from '../config.ts';
import type { GatewayClient } from '../gateway-client.ts';
import type { JobHandlers } from '../job-runner.ts';
import { advertiseAddress } from '../runtime/advertise-address.ts';
import { DockerRuntime } from '../runtime/docker/docker-runtime.ts';
import { DockerEngine } from '../runtime/docker/engine.ts';
import { ProcessRuntime } from '../runtime/process/process-runtime.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Time } from '../time.ts';
import { build } from './build.ts';
import { ensureApplication } from './ensure-application.ts';
import { ensureDatabase } from './ensure-database.ts';
import { teardownApplication } from './teardown-application.ts';

/** The host's runtime, and the work that it does for jobs. */
export interface Workloads {
  readonly runtime: Runtime;
  readonly handlers: JobHandlers;
}

/** What runs workloads on this host, as it is configured. `gateway` answers the client of now. */
export function createWorkloads(config: AgentConfig, gateway: () => GatewayClient, time: Time): Workloads {
  const address = () => advertiseAddress(config);
  const runtime = createRuntime(config, address, time);
  const deps = { runtime, address, time };
  return {
    runtime,
    handlers: {
      build: build({ gateway, stateDir: config.stateDir, time }),
      ensure_application: ensureApplication(deps),
      ensure_database: ensureDatabase(deps),
      teardown_application: teardownApplication(runtime),
    },
  };
}

function createRuntime(config: AgentConfig, address: () => Promise<string>, time: Time): Runtime {
  const deps = { stateDir: config.stateDir, nodeId: config.nodeId, address, time };
  switch (config.runtime) {
    case 'docker':
      return new DockerRuntime({ ...deps, engine: new DockerEngine(config.dockerSocket) });
    case 'process':
      return new ProcessRuntime(deps);
  }
}
