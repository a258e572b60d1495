import type { AgentConfig } from '../config.ts';
import type { JobHandler } from '../job-runner.ts';
import { describeError, type Log } from '../log.ts';
import { diskFs } from '../state-fs.ts';
import type { Time } from '../time.ts';
import { awaitServed } from './await-served.ts';
import { CaddyIngress } from './caddy.ts';
import { EmbeddedIngress } from './embedded.ts';
import type { Ingress } from './ingress.ts';
import { RouteTable } from './route-table.ts';

/** What serves hostnames on this host, and the work that it does for jobs. */
export interface HostIngress {
  readonly publish: JobHandler<'publish_ingress'>;
  /** Puts the routes in force once more, where something else has come between. Never throws. */
  tend(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** The ingress that is configured, serving what it was told last; undefined where there is none. Throws when its table is damaged. */
export async function createIngress(config: AgentConfig, time: Time, log: Log): Promise<HostIngress | undefined> {
  const ingress = ingressOf(config);
  if (ingress === undefined) return undefined;
  const table = await RouteTable.open(diskFs, config.stateDir);
  let failing: string | undefined;
  const tend = async (signal: AbortSignal) => {
    try {
      await ingress.apply(table.served, signal);
      if (failing !== undefined) log.info({}, 'the ingress is in force again');
      failing = undefined;
    } catch (error) {
      const reason = describeError(error);
      if (!signal.aborted && reason !== failing) log.error({ reason }, 'the ingress is not in force');
      failing = reason;
    }
  };
  await tend(new AbortController().signal);
  return {
    async publish(order, signal) {
      const serving = await table.keep(order);
      await ingress.apply(table.served, signal);
      if (serving) await awaitServed(config.ingressBind, order, time, signal);
      return { serving };
    },
    tend,
    close: () => ingress.close(),
  };
}

function ingressOf({ ingress, ingressBind, caddyAdmin }: AgentConfig): Ingress | undefined {
  switch (ingress) {
    case 'embedded':
      return new EmbeddedIngress(ingressBind);
    case 'caddy':
      return new CaddyIngress(caddyAdmin, ingressBind);
    case null:
      return undefined;
  }
}
