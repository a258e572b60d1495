import { generateKeyPairSync, randomBytes } from 'node:crypto';
import type { PkiPaths } from '../pki/files.ts';
import type { FleetDatabase } from './database.ts';
import { type Audience, readEnvironmentFile, writeEnvironmentFile } from './environment-files.ts';
import { settingsFor } from './settings.ts';

/** The environments of the fleet's programs, by audience. They hold secrets: passwords in URLs, the API token. */
export type Environments = Readonly<Record<Audience, Readonly<Record<string, string>>>>;

/** What the environments are made of. */
export interface EnvironmentInput {
  readonly stateDir: string;
  /** `up`'s own environment: its documented settings are handed on. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly database: Pick<FleetDatabase, 'urls' | 'ownerUrl'>;
  readonly pki: PkiPaths;
  readonly ports: { readonly gateway: number; readonly enroll: number; readonly admin: number };
  readonly hetznerUrl: string;
  readonly hetznerToken: string;
  readonly programVersion: string;
  /** Whether there may be machines already, whose user-data names the addresses of the start that made them. */
  readonly restarted: boolean;
}

/** Nobody reaches the stub's servers from there: a range for documentation (RFC 5737). */
const OPERATOR_CIDRS = '192.0.2.0/24';
/** The key that every new project of the stub has. */
const SSH_KEY = 'operator';
/** A name that never resolves (RFC 2606): this fleet serves no releases, but user-data has to name where they would be. */
const RELEASE_URL = 'https://releases.invalid/agent';

/** Makes the environments and writes them to their files (0600), for commands and for programs that are started by hand. */
export async function writeEnvironments(input: EnvironmentInput): Promise<Environments> {
  const { stateDir, env, database, pki, ports, programVersion } = input;
  const urls = { gateway: `https://127.0.0.1:${ports.gateway}`, enroll: `https://127.0.0.1:${ports.enroll}` };
  const environments: Environments = {
    owner: { DATABASE_URL: database.ownerUrl },
    operator: {
      ...settingsFor('operator', env),
      DATABASE_URL: database.urls.operator,
      HETZNER_API_URL: input.hetznerUrl,
      HETZNER_API_TOKEN: input.hetznerToken,
      PUSHLEFT_FLEET_SSH_KEYS: SSH_KEY,
      PUSHLEFT_FLEET_OPERATOR_CIDRS: OPERATOR_CIDRS,
      PUSHLEFT_GATEWAY_URL: urls.gateway,
      PUSHLEFT_ENROLL_URL: urls.enroll,
      PUSHLEFT_RELEASE_URL: RELEASE_URL,
      PUSHLEFT_RELEASE_PUBKEY: await releasePublicKey(stateDir),
      PUSHLEFT_AGENT_VERSION: programVersion,
    },
    gateway: {
      ...settingsFor('gateway', env),
      DATABASE_URL: database.urls.gateway,
      PUSHLEFT_GATEWAY_BIND: `127.0.0.1:${ports.gateway}`,
      PUSHLEFT_AGENT_ENROLL_BIND: `127.0.0.1:${ports.enroll}`,
      PUSHLEFT_GATEWAY_ADMIN_BIND: `127.0.0.1:${ports.admin}`,
      PUSHLEFT_GATEWAY_CERT: pki.gatewayCert,
      PUSHLEFT_GATEWAY_KEY: pki.gatewayKey,
      PUSHLEFT_AGENT_CLIENT_CA: pki.trustBundle,
      PUSHLEFT_AGENT_CA_CERT: pki.caCert,
      PUSHLEFT_AGENT_CA_KEY: pki.caKey,
    },
    scheduler: { ...settingsFor('scheduler', env), DATABASE_URL: database.urls.scheduler },
    'hetzner-stub': {
      ...(input.restarted ? { PUSHLEFT_GATEWAY_URL: urls.gateway, PUSHLEFT_ENROLL_URL: urls.enroll } : {}),
      ...settingsFor('agents', env),
      HETZNER_STUB_TOKEN: input.hetznerToken,
    },
  };
  for (const [audience, variables] of Object.entries(environments)) {
    await writeEnvironmentFile(stateDir, audience as Audience, variables);
  }
  return environments;
}

/** A new bearer token for the stub. */
export function newToken(): string {
  return randomBytes(32).toString('base64url');
}

/** What programs and agents need of their surroundings. Nothing else of `up`'s environment reaches them. */
export function surroundings(
  stateDir: string,
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const inherited = ['PATH', 'HOME', 'LANG', 'TZ', 'TMPDIR'].flatMap((name) => {
    const value = env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  // A dozen starts of Node share what it compiled: half of the CPU time of each.
  return { ...Object.fromEntries(inherited), NODE_COMPILE_CACHE: `${stateDir}/compile-cache` };
}

/** Nothing is signed with the private half, so it is not kept; the public one stays the same for all nodes. */
async function releasePublicKey(stateDir: string): Promise<string> {
  const kept = (await readEnvironmentFile(stateDir, 'operator'))?.['PUSHLEFT_RELEASE_PUBKEY'];
  if (kept !== undefined) return kept;
  const { publicKey } = generateKeyPairSync('ed25519');
  return publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64');
}
