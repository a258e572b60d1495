import type pg from 'pg';
import type { Logger } from 'pino';
import type { Transactor } from '../transactor/transactor.ts';
import type { GatewayConfig } from './config.ts';
import type { HostSightings } from './host-sightings.ts';
import type { Liveness } from './liveness.ts';
import type { Loader } from './loader.ts';
import type { Metrics } from './metrics.ts';
import type { PkiHolder } from './pki-holder.ts';
import type { Turns } from './turns.ts';
import type { Wakes } from './wakes.ts';
import type { WorkFinder } from './work.ts';

/** What the routes of a gateway share. */
export interface Services {
  /** How this gateway names itself in beacons and as an actor. */
  readonly gatewayId: string;
  readonly config: GatewayConfig;
  /** The CA files in force. A route asks for `current` once and uses that throughout. */
  readonly pki: PkiHolder;
  readonly pool: pg.Pool;
  /** Sessions that may take the decision lock themselves. */
  readonly writers: pg.Pool;
  readonly transactor: Transactor;
  readonly loader: Loader;
  readonly work: WorkFinder;
  readonly leaseTurns: Turns;
  readonly wakes: Wakes;
  readonly liveness: Liveness;
  readonly hosts: HostSightings;
  readonly metrics: Metrics;
  readonly log: Logger;
}
