import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { PkiHolder } from './pki-holder.ts';

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
  readonly pki: Pick<PkiHolder, 'current' | 'loadedAtMs' | 'error'>;
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
    ...pkiGauges(gauges.pki),
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

/** What is to be known of the PKI files without looking at them. */
function pkiGauges(pki: Gauges['pki']): Gauge[] {
  const issuer = new Gauge({
    name: 'pushleft_gateway_issuer_info',
    help: 'Always 1; says which CA the files let this gateway issue with.',
    labelNames: ['ca_sha256'],
    registers: [],
    collect() {
      this.reset();
      this.set({ ca_sha256: pki.current.signer.caSha256 }, 1);
    },
  });
  return [
    measured('pushleft_gateway_certificate_seconds', 'Life left of the serving certificate.', () => {
      return (pki.current.serving.notAfterMs - Date.now()) / 1_000;
    }),
    measured('pushleft_gateway_pki_loaded_timestamp_seconds', 'When the PKI files in force were loaded.', () => {
      return pki.loadedAtMs / 1_000;
    }),
    measured(
      'pushleft_gateway_pki_load_failed',
      'Whether the PKI files as they are now cannot be used (1) or are in force (0).',
      () => {
        return pki.error === null ? 0 : 1;
      },
    ),
    measured('pushleft_gateway_trusted_cas', 'CAs whose agents are let in.', () => pki.current.trustedCaSha256s.length),
    issuer,
  ];
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
