import {
  abortRotationCommand,
  beginRotationCommand,
  completeRotationCommand,
  initializeCaCommand,
  recordGatewayCertificateCommand,
  switchIssuerCommand,
} from '../../../src/commands/ca.ts';
import {
  authorizeEnrollmentCommand,
  authorizeRenewalCommand,
  recordFirstUseCommand,
  recordIssuedCommand,
  revokeCertificatesCommand,
} from '../../../src/commands/certificate.ts';
import { armReenrollmentCommand, armSecretCommand, failProvisioningCommand } from '../../../src/commands/node.ts';
import type { CaState } from '../../../src/domain/ca/state.ts';
import { authenticate } from '../../../src/domain/certificate/authenticate.ts';
import type { CertificateState } from '../../../src/domain/certificate/state.ts';
import type { Decision } from '../../../src/domain/decision.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import type { NodeState } from '../../../src/domain/node/state.ts';
import { nodeStream } from '../../../src/domain/stream.ts';
import type { CommandDefinition } from '../../../src/transactor/command.ts';
import { CA, make, pem, START } from '../../support/events.ts';
import { MemoryLog } from '../../support/memory-log.ts';

const HOUR = 3_600_000;
/** Short, so that much ends. */
const LIFETIME_MS = 6 * HOUR;
const SECRET_TTL_MS = 15 * 60_000;
const GATEWAYS = ['gateway@a:1', 'gateway@b:1'];

/** What a host has on its disk. */
interface Host {
  readonly nodeId: string;
  /** Certificates whose answer has arrived, the newest last. */
  held: readonly string[];
  /** By which CAs it believes a gateway. */
  trust: readonly string[];
  secret: { readonly sha256: string; readonly trust: readonly string[] } | undefined;
}

/** One thing that happens; `n` decides whatever there is to choose. */
export interface Step {
  readonly what: (typeof STEPS)[number];
  readonly host: number;
  readonly n: number;
}

/** What can happen. */
export const STEPS = [
  'renew',
  'use',
  'enroll',
  'begin',
  'switch',
  'complete',
  'abort',
  'certify',
  'arm',
  'time',
  'late',
  'status',
  'revoke',
  'fail',
  'settle',
] as const;

/** A fleet whose hosts lose answers, sleep and wake: the real decisions on the real folds, and beside them what only hosts know. */
export class Model {
  readonly hosts: readonly Host[];
  /** The CA of the gateways' server certificates. */
  serving = CA;
  now = START;
  readonly #log = new MemoryLog();
  #ids = 0;

  private constructor(hosts: number) {
    this.hosts = Array.from({ length: hosts }, () => ({
      nodeId: this.#uuid(),
      held: [],
      trust: [],
      secret: undefined,
    }));
  }

  /** A fleet with a CA, and hosts that are being provisioned. */
  static async create(hosts: number): Promise<Model> {
    const model = new Model(hosts);
    await model.#decide(initializeCaCommand, make('ca_initialized').data);
    for (const host of model.hosts) {
      const { nodeId: node_id } = host;
      const name = `host-${model.#ids}`;
      model.#record(
        node_id,
        make('node_provisioning_requested', { node_id, name }),
        make('node_server_running', { node_id }),
      );
      await model.#arm(host, 0);
    }
    return model;
  }

  get ca(): CaState {
    const ca = this.#log.rows.rows('fleet_ca').get('fleet');
    if (ca === undefined) throw new Error('the fleet has no CA');
    return ca;
  }

  node(nodeId: string): NodeState {
    const node = this.#log.rows.rows('fleet_nodes').get(nodeId);
    if (node === undefined) throw new Error(`there is no node ${nodeId}`);
    return node;
  }

  get certificates(): readonly CertificateState[] {
    return [...this.#log.rows.rows('fleet_node_certificates').values()];
  }

  /** Whether a host can still come to lease: with a certificate, or with a secret that was not used up for anybody else. */
  hasWayIn({ nodeId, held, trust, secret }: Host): boolean {
    const node = this.node(nodeId);
    const inForce = held.some((fingerprint) => {
      const certificate = this.certificates.find((c) => c.fingerprint === fingerprint);
      const { ok } = authenticate({ fingerprint }, { node, certificate }, this);
      return ok && this.ca.trusted.some(({ sha256 }) => sha256 === certificate?.issuer_ca_sha256);
    });
    if (inForce && trust.includes(this.serving)) return true;
    return secret?.trust.includes(this.serving) === true && this.#redeemable(node, secret.sha256);
  }

  #redeemable(node: NodeState, sha256: string): boolean {
    if (node.provision_state === 'failed' || node.status === 'retired') return false;
    const given = this.certificates.find((c) => c.secret_sha256 === sha256);
    if (given !== undefined) {
      const ends = given.secret_expires_at ?? 0;
      return given.revoked_at === null && given.first_used_at === null && ends > this.now;
    }
    return node.armed_secrets.some((armed) => armed.sha256 === sha256 && armed.expires_at > this.now);
  }

  /** Makes one thing happen: the events that it led to. */
  async take({ what, host: index, n }: Step): Promise<readonly FleetEvent[]> {
    const host = this.hosts[index % this.hosts.length];
    if (host === undefined) throw new Error('a fleet needs a host');
    const before = this.#log.events.length;
    await this.#happen(what, host, n);
    return this.#log.events.slice(before);
  }

  async #happen(what: Step['what'], host: Host, n: number): Promise<void> {
    const { nodeId: node_id } = host;
    switch (what) {
      case 'renew':
        return this.#renew(host, n);
      case 'use':
        return this.#use(host);
      case 'enroll':
        return this.#enroll(host, n);
      case 'begin':
        return this.#begin(n);
      case 'switch':
        this.#beat(n);
        return this.#give(switchIssuerCommand, { rotation_id: this.ca.rotation_id ?? '' });
      case 'complete':
        return this.#complete(n);
      case 'abort':
        if (n % 4 > 0) return;
        return this.#give(abortRotationCommand, {});
      case 'certify':
        return this.#certify(this.ca.trusted[n % this.ca.trusted.length]?.sha256 ?? CA);
      case 'arm':
        return this.#arm(host, n);
      case 'time':
        this.now += (n % 100) * 10_000;
        return;
      case 'late':
        this.now += (n % 100) * (HOUR / 10);
        return;
      case 'status':
        return this.#changeStatus(this.node(node_id), n);
      case 'revoke': {
        const own = this.certificates.filter((c) => c.node_id === node_id);
        const certificate_id = own[n % own.length]?.certificate_id;
        const one = certificate_id !== undefined && n % 3 > 0 ? { certificate_id } : {};
        return this.#give(revokeCertificatesCommand, { node_id, ...one });
      }
      case 'settle':
        for (const each of this.hosts) {
          await this.#renew(each, 3);
          await this.#use(each);
        }
        return;
      case 'fail':
        return this.#give(failProvisioningCommand, { node_id });
    }
  }

  async #begin(n: number): Promise<void> {
    await this.#decide(beginRotationCommand, {
      rotation_id: this.#uuid(),
      previous_ca_sha256: this.ca.current_ca_sha256,
      // Now and then one that was there before.
      ca_sha256: n % 8 === 0 ? CA : this.#hex(64),
      ca_pem: pem(this.#hex(64)),
      not_after: this.now + 20_000 * HOUR,
    });
  }

  async #complete(n: number): Promise<void> {
    this.#beat(n);
    const decision = await this.#decide(completeRotationCommand, {});
    if ('events' in decision) await this.#certify(this.ca.current_ca_sha256);
  }

  async #certify(issuer_ca_sha256: string): Promise<void> {
    const { data } = make('gateway_certificate_issued', { certificate_id: this.#hex(32), issuer_ca_sha256 });
    const decision = await this.#decide(recordGatewayCertificateCommand, data);
    if ('events' in decision) this.serving = issuer_ca_sha256;
  }

  /** Gateways say what they trust; in one of eight cases one has not read its files again. */
  #beat(n: number): void {
    const trusted = this.ca.trusted.map(({ sha256 }) => sha256);
    for (const [i, program] of GATEWAYS.entries()) {
      const trusted_ca_sha256s = n % 8 === i ? trusted.slice(1) : trusted;
      this.#log.rows.putBeacon({ program, kind: 'gateway', trusted_ca_sha256s, beacon_at: this.now });
    }
  }

  async #arm(host: Host, n: number): Promise<void> {
    const sha256 = this.#hex(64);
    const all = this.ca.trusted.map((ca) => ca.sha256);
    // In one of four cases the bundle was rendered before the rotation began, in another one before anything was rotated.
    const trust = n % 4 === 3 ? all.slice(-1) : n % 4 === 2 ? [CA] : all;
    const command = { node_id: host.nodeId, secret_sha256: sha256, ttl_ms: SECRET_TTL_MS, ca_sha256s: trust };
    const definition = this.node(host.nodeId).status === 'provisioning' ? armSecretCommand : armReenrollmentCommand;
    const decision = await this.#decide(definition, command);
    if ('events' in decision) host.secret = { sha256, trust };
  }

  async #enroll(host: Host, n: number): Promise<void> {
    const { nodeId, secret } = host;
    if (secret?.trust.includes(this.serving) !== true) return;
    const wish = { ...this.#wish(secret.sha256, n), node_id: nodeId, secret_sha256: secret.sha256 };
    await this.#obtain(host, n, await this.#decide(authorizeEnrollmentCommand, wish), wish.tbs_sha256);
  }

  async #renew(host: Host, n: number): Promise<void> {
    const fingerprint = host.held.at(n % 5 === 0 ? 0 : -1);
    if (fingerprint === undefined || !host.trust.includes(this.serving)) return;
    // The key of an attempt whose answer was lost, or a fresh one.
    const key = n % 4 === 0 ? fingerprint : this.#hex(64);
    const wish = { ...this.#wish(key, n), fingerprint };
    await this.#obtain(host, n, await this.#decide(authorizeRenewalCommand, wish), wish.tbs_sha256);
  }

  /** After the authorisation: signed unless the gateway dies, answered unless the connection does. */
  async #obtain(host: Host, n: number, decision: Decision, tbs_sha256: string): Promise<void> {
    if ('refusal' in decision || n % 7 === 1) return;
    const { certificate_id, tbs_sha256: earlier } = decision.reply;
    if (typeof certificate_id !== 'string') throw new Error('no certificate was authorised');
    const fingerprint = this.#hex(64);
    const issued = await this.#decide(recordIssuedCommand, {
      certificate_id,
      node_id: host.nodeId,
      tbs_sha256: typeof earlier === 'string' ? earlier : tbs_sha256,
      fingerprint,
      certificate_pem: pem(fingerprint),
    });
    if ('refusal' in issued || n % 7 === 2) return;
    const held = this.certificates.find((c) => c.certificate_id === certificate_id)?.fingerprint;
    if (typeof held !== 'string') throw new Error('no certificate was issued');
    host.held = [...host.held.filter((known) => known !== held), held];
    host.trust = this.ca.trusted.map(({ sha256 }) => sha256);
  }

  async #use(host: Host): Promise<void> {
    const fingerprint = host.held.at(-1);
    if (fingerprint === undefined || !host.trust.includes(this.serving)) return;
    const decision = await this.#decide(recordFirstUseCommand, { fingerprint });
    if (!('refusal' in decision)) Object.assign(host, { held: [fingerprint], secret: undefined });
  }

  /** In one of eight cases the gateway knows nothing of a rotation, or believes that it is over. */
  #wish(key: string, n: number) {
    const { trusted, issuing_ca_sha256 } = this.ca;
    return {
      certificate_id: this.#hex(32),
      public_key_spki: Buffer.from(key, 'hex').toString('base64'),
      tbs_sha256: this.#hex(64),
      issuer_ca_sha256: n % 8 === 7 ? (trusted.at(n % 16 > 7 ? 0 : -1)?.sha256 ?? '') : issuing_ca_sha256,
      not_before: this.now,
      not_after: this.now + LIFETIME_MS,
    };
  }

  #changeStatus({ node_id, status }: NodeState, n: number): void {
    const drain = make('node_drain_started', { node_id });
    const lost = make('node_lost', { node_id });
    const changes: Readonly<Partial<Record<NodeState['status'], readonly FleetEvent[]>>> = {
      active: [make('node_became_unhealthy', { node_id }), drain],
      unhealthy: [make('node_recovered', { node_id }), make('node_recovered', { node_id }), drain, lost],
      draining: [lost],
    };
    const possible = changes[status] ?? [];
    const change = possible[n % possible.length];
    if (change !== undefined) this.#record(node_id, change);
  }

  #decide<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<Decision> {
    return this.#log.decide(definition, command, { now: this.now, at: this.now });
  }

  /** Decides a command whose outcome the model learns from the tables alone. */
  async #give<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<void> {
    await this.#decide(definition, command);
  }

  /** Records what no command of today decides. */
  #record(node_id: string, ...events: readonly FleetEvent[]): void {
    this.#log.record(
      events.map((event) => ({ stream: nodeStream(node_id), event })),
      this.now,
    );
  }

  #hex(digits: number): string {
    this.#ids += 1;
    return this.#ids.toString(16).padStart(digits, '0');
  }

  #uuid(): string {
    return `00000000-0000-4000-8000-${this.#hex(12)}`;
  }
}
