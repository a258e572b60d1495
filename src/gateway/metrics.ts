import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** What a gateway counts. `answered` and `leaseGranted` are on the hot path: they only add to a number. */
export interface Metrics {
  readonly registry: Registry;
  answered(route: string, status: number): void;
  leaseGranted(): void;
  tick(seconds: number): void;
}

/** Numbers that are asked for when someone looks. */
export interface Gauges {
  readonly transactorQueue: () => number;
  readonly waitingLeases: () => number;
  readonly certificateSecondsLeft: () => number;
}

/** The gateway's Prometheus metrics, in a registry of their own. */
export function createMetrics(gauges: Gauges): Metrics {
  const registry = new Registry();
  const answers = new Map<string, Map<number, number>>();
  let leases = 0;

  const requests = new Counter({
    name: 'pushleft_gateway_requests_total',
    help: 'Requests answered, by route and status.',
    labelNames: ['route', 'status'],
    registers: [],
    collect() {
      this.reset();
      for (const [route, statuses] of answers) {
        for (const [status, count] of statuses) this.inc({ route, status }, count);
      }
    },
  });
  const granted = new Counter({
    name: 'pushleft_gateway_leases_granted_total',
    help: 'Jobs handed to agents.',
    registers: [],
    collect() {
      this.reset();
      this.inc(leases);
    },
  });
  const ticks = new Histogram({
    name: 'pushleft_gateway_tick_seconds',
    help: 'How long the query took that authenticates the requests of one moment.',
    buckets: [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1, 5],
    registers: [],
  });
  registry.registerMetric(requests);
  registry.registerMetric(granted);
  registry.registerMetric(ticks);
  for (const gauge of [
    measured('pushleft_gateway_transactor_queue', 'Commands that wait for their turn.', gauges.transactorQueue),
    measured('pushleft_gateway_waiting_leases', 'Lease requests that wait for a job.', gauges.waitingLeases),
    measured(
      'pushleft_gateway_certificate_seconds',
      'Life left of the serving certificate.',
      gauges.certificateSecondsLeft,
    ),
  ]) {
    registry.registerMetric(gauge);
  }

  return {
    registry,
    answered(route, status) {
      const statuses = answers.get(route) ?? new Map<number, number>();
      if (statuses.size === 0) answers.set(route, statuses);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    },
    leaseGranted() {
      leases += 1;
    },
    tick: (seconds) => ticks.observe(seconds),
  };
}

function measured(name: string, help: string, read: () => number): Gauge {
  return new Gauge({
    name,
    help,
    registers: [],
    collect() {
      this.set(read());
    },
  });
}
