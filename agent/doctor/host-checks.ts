import { stat, statfs } from 'node:fs/promises';
import { probeDockerVersion, readBridgeNetfilter } from '../host-facts.ts';
import { describeError } from '../log.ts';
import { type CheckContext, fail, pass, type Verdict, warn } from './verdict.ts';

const BYTES_PER_GB = 1024 ** 3;
const DISK_FAIL_GB = 1;
const DISK_WARN_GB = 5;

const NOT_USED = pass('not used with the process runtime');

/** The state directory's file system has room for a new identity, a release and logs. */
export async function diskSpaceCheck({ config }: CheckContext): Promise<Verdict> {
  const { bavail, bsize, ffree, files } = await statfs(config.stateDir);
  const freeGb = (bavail * bsize) / BYTES_PER_GB;
  const detail = `${freeGb.toFixed(1)} GiB free for ${config.stateDir}`;
  // Some file systems count no inodes at all.
  if (files > 0 && ffree === 0) return fail(`no inodes left for ${config.stateDir}`);
  if (freeGb < DISK_FAIL_GB) return fail(detail);
  return freeGb < DISK_WARN_GB ? warn(detail) : pass(detail);
}

/** The data volume is mounted: without it, workloads would fill the system disk. Requirement, Cloud-init. */
export async function dataMountCheck({ config }: CheckContext): Promise<Verdict> {
  if (config.runtime === 'process') return NOT_USED;
  const path = `${config.stateDir}/data`;
  try {
    const [data, parent] = await Promise.all([stat(path), stat(config.stateDir)]);
    return data.dev === parent.dev ? fail(`${path} is not a mount point`) : pass(`${path} is mounted`);
  } catch (error) {
    return fail(describeError(error));
  }
}

/** The Docker daemon answers on its socket. */
export async function dockerCheck({ config }: CheckContext): Promise<Verdict> {
  if (config.runtime === 'process') return NOT_USED;
  try {
    return pass(`version ${(await probeDockerVersion(config.dockerSocket)) ?? 'unknown'}`);
  } catch (error) {
    return fail(`${config.dockerSocket} does not answer: ${describeError(error)}`);
  }
}

/** Bridged frames pass the firewall's rules; otherwise those rules are bypassed. Requirement, Host precondition. */
export async function bridgeNetfilterCheck({ config }: CheckContext): Promise<Verdict> {
  if (config.runtime === 'process') return NOT_USED;
  const live = await readBridgeNetfilter();
  if (live === null) return fail('br_netfilter is not loaded');
  return live ? pass('net.bridge.bridge-nf-call-iptables is 1') : fail('net.bridge.bridge-nf-call-iptables is 0');
}
