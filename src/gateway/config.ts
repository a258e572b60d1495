import { isIP } from 'node:net';
import * as v from 'valibot';
import type { PkiPaths } from '../pki/files.ts';
import { AgentVersion } from '../protocol/identifiers.ts';
import type { ProbeAddress } from './probe.ts';

/** Where a listener listens. Port 0 takes a free one. */
export interface BindAddress {
  readonly host: string;
  readonly port: number;
}

/** How a gateway runs. */
export interface GatewayConfig {
  readonly databaseUrl: string;
  readonly programVersion: string;
  readonly agentBind: BindAddress;
  readonly enrollBind: BindAddress;
  /** Loopback, always: it answers without authentication. */
  readonly adminBind: BindAddress;
  readonly pki: PkiPaths;
  readonly certificateLifetimeSeconds: number;
  readonly leaseMs: number;
  /** Where agents reach the agent listener; null: where it listens. */
  readonly probeAddress: ProbeAddress | null;
  /** The version that agents are told to run; null asks for none. */
  readonly targetVersion: string | null;
}

/** The variable that names each PKI file, so that a problem with a file can be told by its setting. */
export const PKI_VARIABLES = {
  gatewayCert: 'PUSHLEFT_GATEWAY_CERT',
  gatewayKey: 'PUSHLEFT_GATEWAY_KEY',
  trustBundle: 'PUSHLEFT_AGENT_CLIENT_CA',
  caCert: 'PUSHLEFT_AGENT_CA_CERT',
  caKey: 'PUSHLEFT_AGENT_CA_KEY',
} as const satisfies Record<keyof PkiPaths, string>;

/** The outcome of reading an environment: a configuration, or one line that names the variable. */
export type ConfigReading =
  | { readonly ok: true; readonly config: GatewayConfig }
  | { readonly ok: false; readonly variable: string; readonly message: string };

/** Never used: what is checked first makes an address. */
const UNBOUND: BindAddress = { host: '127.0.0.1', port: 0 };

const path = v.pipe(v.string(), v.nonEmpty('names no file'));

const wholeNumber = (fallback: number, least: number, most: number) => {
  const what = `is not a whole number from ${least} to ${most}`;
  return v.pipe(
    v.optional(v.string(), String(fallback)),
    v.regex(/^\d{1,9}$/, what),
    v.transform(Number),
    v.minValue(least, what),
    v.maxValue(most, what),
  );
};

const bind = (fallback: string) =>
  v.pipe(
    v.optional(v.string(), fallback),
    v.check(
      (text) => parseBind(text) !== undefined,
      'is not an IP address and a port, like 127.0.0.1:8443 or [::1]:8443',
    ),
    v.transform((text) => parseBind(text) ?? UNBOUND),
  );

const environment = v.object({
  DATABASE_URL: v.pipe(v.string(), v.regex(/^postgres(?:ql)?:\/\//, 'is not a postgresql:// URL')),
  PUSHLEFT_GATEWAY_BIND: bind('0.0.0.0:8443'),
  PUSHLEFT_AGENT_ENROLL_BIND: bind('0.0.0.0:8444'),
  PUSHLEFT_GATEWAY_ADMIN_BIND: v.pipe(
    bind('127.0.0.1:8445'),
    v.check(({ host }) => isLoopback(host), 'is not a loopback address; health and metrics are for this host alone'),
  ),
  PUSHLEFT_GATEWAY_CERT: path,
  PUSHLEFT_GATEWAY_KEY: path,
  PUSHLEFT_AGENT_CLIENT_CA: path,
  PUSHLEFT_AGENT_CA_CERT: path,
  PUSHLEFT_AGENT_CA_KEY: path,
  PUSHLEFT_AGENT_CERT_LIFETIME_SECONDS: wholeNumber(86_400, 1, 31_536_000),
  // The Date header by which agents count has whole seconds: of less than 3 too little would be certain.
  PUSHLEFT_LEASE_SECONDS: wholeNumber(60, 3, 3_600),
  PUSHLEFT_GATEWAY_PROBE_ADDRESS: v.optional(
    v.pipe(
      v.string(),
      v.check(
        (text) => text === '' || parseAddress(text) !== null,
        'is not a host and a port, like fleet.example.com:8443',
      ),
    ),
    '',
  ),
  PUSHLEFT_AGENT_VERSION: v.optional(
    v.pipe(
      v.string(),
      v.check((text) => v.is(AgentVersion, text), 'is not a version'),
    ),
  ),
});

/** Reads the gateway's environment (DESIGN §6). Never throws; no value is quoted, since a URL holds a password. */
export function readGatewayConfig(
  env: Readonly<Record<string, string | undefined>>,
  programVersion: string,
): ConfigReading {
  const read = v.safeParse(environment, env, { abortEarly: true });
  if (!read.success) {
    const [issue] = read.issues;
    const variable = v.getDotPath(issue) ?? 'environment';
    return {
      ok: false,
      variable,
      message: `${variable} ${issue.input === undefined ? 'is not set' : issue.message}`,
    };
  }
  const set = read.output;
  return {
    ok: true,
    config: {
      databaseUrl: set.DATABASE_URL,
      programVersion,
      agentBind: set.PUSHLEFT_GATEWAY_BIND,
      enrollBind: set.PUSHLEFT_AGENT_ENROLL_BIND,
      adminBind: set.PUSHLEFT_GATEWAY_ADMIN_BIND,
      pki: {
        gatewayCert: set.PUSHLEFT_GATEWAY_CERT,
        gatewayKey: set.PUSHLEFT_GATEWAY_KEY,
        trustBundle: set.PUSHLEFT_AGENT_CLIENT_CA,
        caCert: set.PUSHLEFT_AGENT_CA_CERT,
        caKey: set.PUSHLEFT_AGENT_CA_KEY,
      },
      certificateLifetimeSeconds: set.PUSHLEFT_AGENT_CERT_LIFETIME_SECONDS,
      leaseMs: set.PUSHLEFT_LEASE_SECONDS * 1_000,
      probeAddress: parseAddress(set.PUSHLEFT_GATEWAY_PROBE_ADDRESS),
      targetVersion: set.PUSHLEFT_AGENT_VERSION ?? null,
    },
  };
}

/** Whether an address is of this host alone. */
export function isLoopback(host: string): boolean {
  return host === '::1' || host.startsWith('127.');
}

function parseAddress(text: string): ProbeAddress | null {
  const parts = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]{1,253})):(\d{1,5})$/i.exec(text);
  const host = parts?.[1] ?? parts?.[2] ?? '';
  const port = Number(parts?.[3]);
  return host !== '' && port >= 1 && port <= 65_535 ? { host, port } : null;
}

function parseBind(text: string): BindAddress | undefined {
  const parts = /^(?:\[([0-9a-f:.]+)\]|([0-9.]+)):(\d{1,5})$/i.exec(text);
  const host = parts?.[1] ?? parts?.[2] ?? '';
  const port = Number(parts?.[3]);
  return isIP(host) !== 0 && port <= 65_535 ? { host, port } : undefined;
}
