import { readFile, statfs } from 'node:fs/promises';
import { cpus, release, totalmem } from 'node:os';
import { Client } from 'undici';
import * as v from 'valibot';
import { BootId } from '../src/protocol/identifiers.ts';
import type { HostFacts } from '../src/protocol/lease.ts';
import { toBoundedText } from '../src/protocol/text.ts';
import type { IngressKind, Runtime } from './config.ts';

const BYTES_PER_MB = 1024 ** 2;
const BYTES_PER_GB = 1024 ** 3;
const DOCKER_TIMEOUT_MS = 2_000;

/** Where the facts come from. */
export interface HostFactsSources {
  readonly stateDir: string;
  readonly dockerSocket: string;
  /** How the host runs workloads. */
  readonly runtime: Runtime;
  /** What serves hostnames on it. */
  readonly ingress: IngressKind | null;
}

/** Answers the facts of now, but for Docker's version, which is asked for once in a process. */
export function hostFactsReader({
  stateDir,
  dockerSocket,
  runtime,
  ingress,
}: HostFactsSources): () => Promise<HostFacts> {
  let dockerVersion: Promise<string | null> | undefined;
  return async () => {
    dockerVersion ??= probeDockerVersion(dockerSocket).catch(() => null);
    return {
      cpu_count: Math.max(1, cpus().length),
      memory_mb: Math.max(1, Math.floor(totalmem() / BYTES_PER_MB)),
      data_disk_free_gb: await freeDiskGb(`${stateDir}/data`),
      kernel: toBoundedText(release(), 128) ?? 'unknown',
      docker_version: await dockerVersion,
      bridge_netfilter: await readBridgeNetfilter(),
      runtime,
      ingress,
    };
  };
}

/** Space that an unprivileged process could still fill, in whole GiB; null when the path is not there. */
async function freeDiskGb(path: string): Promise<number | null> {
  try {
    const { bavail, bsize } = await statfs(path);
    return Math.floor((bavail * bsize) / BYTES_PER_GB);
  } catch {
    return null;
  }
}

/** Whether bridged frames pass iptables; null while br_netfilter is not loaded. Requirement, Host precondition. */
export async function readBridgeNetfilter(): Promise<boolean | null> {
  try {
    return (await readFile('/proc/sys/net/bridge/bridge-nf-call-iptables', 'utf8')).trim() === '1';
  } catch {
    return null;
  }
}

/** Linux's id of the present boot, another one on each host and after each boot; undefined where there is none. */
export async function readBootId(): Promise<string | undefined> {
  const text = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '');
  return v.is(BootId, text.trim()) ? text.trim() : undefined;
}

const DockerVersion = v.object({ Version: v.string() });

/** The daemon's version over its socket. Throws when nothing sensible answers within two seconds. */
export async function probeDockerVersion(socketPath: string): Promise<string | null> {
  const client = new Client('http://docker', { socketPath, maxResponseSize: 64 * 1024 });
  try {
    const signal = AbortSignal.timeout(DOCKER_TIMEOUT_MS);
    const response = await client.request({ method: 'GET', path: '/version', signal });
    return toBoundedText(v.parse(DockerVersion, await response.body.json()).Version, 64);
  } finally {
    await client.destroy();
  }
}
