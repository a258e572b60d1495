import { isIP } from 'node:net';
import { isAbsolute, resolve } from 'node:path';
import * as v from 'valibot';
import { NodeId } from '../src/protocol/identifiers.ts';
import { LEASE_WAIT_MAX_SECONDS } from '../src/protocol/limits.ts';
import type { IngressBind } from './ingress/ingress.ts';

/** How the host runs workloads: containers, or plain processes where there is no Docker. */
export type Runtime = 'docker' | 'process';

/** What serves hostnames on the host: the agent itself, or a Caddy beside it. */
export type IngressKind = 'embedded' | 'caddy';

/** Everything an agent is told from outside; DESIGN §6. */
export interface AgentConfig {
  readonly nodeId: string;
  /** Trust for enrolment, until the gateway's own bundle is staged. */
  readonly bootstrapCaFile: string;
  /** Origin of the mTLS listener. */
  readonly gatewayUrl: URL;
  /** Origin of the enrolment listener. */
  readonly enrollUrl: URL;
  readonly stateDir: string;
  readonly runtime: Runtime;
  readonly dockerSocket: string;
  /** The address that workloads are reached at; undefined: found out (runtime/advertise-address.ts). */
  readonly advertiseAddress: string | undefined;
  /** Null where the host serves no hostnames. */
  readonly ingress: IngressKind | null;
  /** Where the ingress listens. */
  readonly ingressBind: IngressBind;
  /** Origin of Caddy's admin API. */
  readonly caddyAdmin: URL;
  /** How long the gateway may hold a lease request until there is a job. */
  readonly leaseWaitSeconds: number;
  /** Distance of two looks at whether the certificate is due for renewal. */
  readonly renewCheckSeconds: number;
  /** How long a running job may go on after SIGTERM before it is handed back. */
  readonly stopGraceSeconds: number;
}

/** Variables by name, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A value, or one line that names the variable and what is wrong with it. */
export type ConfigResult =
  | { readonly ok: true; readonly config: AgentConfig }
  | { readonly ok: false; readonly problem: string };

class Misconfigured extends Error {}

/** Reads and checks the whole configuration. Says only the first thing that is wrong, and never the value. */
export function readConfig(env: Environment): ConfigResult {
  try {
    return { ok: true, config: parseConfig(env) };
  } catch (error) {
    if (error instanceof Misconfigured) return { ok: false, problem: error.message };
    throw error;
  }
}

function parseConfig(env: Environment): AgentConfig {
  return {
    nodeId: read(env, 'PUSHLEFT_NODE_ID', undefined, nodeId),
    bootstrapCaFile: read(env, 'PUSHLEFT_AGENT_CA', undefined, absolutePath),
    gatewayUrl: read(env, 'PUSHLEFT_GATEWAY_URL', undefined, httpsOrigin),
    enrollUrl: read(env, 'PUSHLEFT_ENROLL_URL', undefined, httpsOrigin),
    stateDir: read(env, 'PUSHLEFT_AGENT_STATE_DIR', '/var/lib/pushleft', absolutePath),
    runtime: read(env, 'PUSHLEFT_RUNTIME', 'docker', runtime),
    dockerSocket: read(env, 'PUSHLEFT_DOCKER_SOCKET', '/var/run/docker.sock', absolutePath),
    advertiseAddress: readOptional(env, 'PUSHLEFT_AGENT_ADVERTISE_ADDRESS', ipAddress),
    ingress: read(env, 'PUSHLEFT_INGRESS', 'none', ingress),
    ingressBind: read(env, 'PUSHLEFT_INGRESS_BIND', '0.0.0.0:80', bind),
    caddyAdmin: read(env, 'PUSHLEFT_CADDY_ADMIN', 'http://127.0.0.1:2019', loopbackOrigin),
    leaseWaitSeconds: read(env, 'PUSHLEFT_AGENT_LEASE_WAIT_SECONDS', '20', seconds(0, LEASE_WAIT_MAX_SECONDS)),
    renewCheckSeconds: read(env, 'PUSHLEFT_AGENT_RENEW_CHECK_SECONDS', '600', seconds(1, 86_400)),
    stopGraceSeconds: read(env, 'PUSHLEFT_AGENT_STOP_GRACE_SECONDS', '20', seconds(0, 3_600)),
  };
}

/** A value's parser answers the value, or says in words what it expects. */
type Parse<T> = (text: string) => { readonly value: T } | { readonly expects: string };

function read<T>(env: Environment, name: string, fallback: string | undefined, parse: Parse<T>): T {
  const text = env[name] === undefined || env[name] === '' ? fallback : env[name];
  if (text === undefined) throw new Misconfigured(`${name} is not set`);
  const parsed = parse(text);
  if ('expects' in parsed) throw new Misconfigured(`${name} must be ${parsed.expects}`);
  return parsed.value;
}

function readOptional<T>(env: Environment, name: string, parse: Parse<T>): T | undefined {
  return env[name] === undefined || env[name] === '' ? undefined : read(env, name, undefined, parse);
}

const nodeId: Parse<string> = (text) =>
  v.is(NodeId, text) ? { value: text } : { expects: "a node's id: a UUID in lower case" };

const absolutePath: Parse<string> = (text) =>
  isAbsolute(text) && !text.includes('\0') ? { value: resolve(text) } : { expects: 'an absolute path' };

const runtime: Parse<Runtime> = (text) =>
  text === 'docker' || text === 'process' ? { value: text } : { expects: 'docker or process' };

const ingress: Parse<IngressKind | null> = (text) => {
  if (text === 'none') return { value: null };
  return text === 'embedded' || text === 'caddy' ? { value: text } : { expects: 'none, embedded or caddy' };
};

const bind: Parse<IngressBind> = (text) => {
  const parts = /^(?:\[([0-9a-f:.]+)\]|([0-9.]+)):(\d{1,5})$/i.exec(text);
  const host = parts?.[1] ?? parts?.[2] ?? '';
  const port = Number(parts?.[3]);
  return isIP(host) !== 0 && port >= 1 && port <= 65_535
    ? { value: { host, port } }
    : { expects: 'an IP address and a port, such as 0.0.0.0:80' };
};

/** Whoever reaches the admin API can have Caddy serve anything. */
const loopbackOrigin: Parse<URL> = (text) => {
  const url = URL.parse(text);
  const isOrigin = url !== null && url.protocol === 'http:' && `${url.origin}/` === url.href;
  const isLoopback = url !== null && (url.hostname === '[::1]' || url.hostname.startsWith('127.'));
  return isOrigin && isLoopback
    ? { value: url }
    : { expects: 'an http origin on a loopback address, such as http://127.0.0.1:2019' };
};

const ipAddress: Parse<string> = (text) => (isIP(text) === 0 ? { expects: 'an IP address' } : { value: text });

/** An origin alone: a path, query or user would silently be dropped later. */
const httpsOrigin: Parse<URL> = (text) => {
  const url = URL.parse(text);
  const isOrigin = url !== null && url.protocol === 'https:' && `${url.origin}/` === url.href;
  return isOrigin ? { value: url } : { expects: 'an https origin such as https://gateway.example:8443' };
};

const seconds =
  (min: number, max: number): Parse<number> =>
  (text) => {
    const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? { value } : { expects: `a whole number of seconds from ${min} to ${max}` };
  };

/** A URL's host without the brackets of an IPv6 address, and whether it is an address at all. */
export function hostOf(url: URL): { readonly host: string; readonly isAddress: boolean } {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return { host, isAddress: isIP(host) !== 0 };
}
