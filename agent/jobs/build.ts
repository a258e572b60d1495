import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { JobResult } from '../../src/protocol/job-kinds/registry.ts';
import { backoffMs } from '../backoff.ts';
import type { GatewayClient, SourceFile } from '../gateway-client.ts';
import { JobFailed, type JobHandler, type JobLease } from '../job-runner.ts';
import { stopWorkload } from '../runtime/process/stop.ts';
import type { Time } from '../time.ts';
import { runBuildCommand } from './build-command.ts';
import { unpack } from './unpack.ts';

/** Attempts at a download; the lease goes on meanwhile. */
const DOWNLOAD_ATTEMPTS = 5;

/** What a build needs. */
export interface BuildDependencies {
  readonly gateway: () => Pick<GatewayClient, 'source'>;
  readonly stateDir: string;
  readonly time: Time;
}

/**
 * Builds an artifact in `<state>/builds/<job id>`, which is removed afterwards, however it ends, with everything that still runs of it.
 * The end of what a failed build said stays in `<state>/builds/last-failure.log` (0600).
 */
export function build({ gateway, stateDir, time }: BuildDependencies): JobHandler<'build'> {
  const builds = `${stateDir}/builds`;
  return async (payload, signal, lease) => {
    await sweep(builds, time);
    const workspace = `${builds}/${lease.id}`;
    const at = (name: string) => `${workspace}/${name}`;
    for (const name of ['source', 'home']) await mkdir(at(name), { recursive: true, mode: 0o700 });
    try {
      const { source_sha256: sha256, source_bytes: bytes } = payload;
      await download(gateway, lease, { file: at('source.tar'), bytes, sha256 }, time, signal);
      await unpack(at('source.tar'), at('source'), signal);
      const place = { folder: at('source'), home: at('home'), artifact: at('artifact') };
      const command = { ...place, command: payload.command, timeoutMs: payload.timeout_seconds * 1_000 };
      const { code, output } = await runBuildCommand(command, time, signal);
      if (code === 0) return await describeArtifact(at('artifact'));
      await writeFile(`${builds}/last-failure.log`, output, { mode: 0o600 });
      throw new JobFailed('work_failed', `the build ended with ${code === null ? 'a signal' : `exit code ${code}`}`);
    } finally {
      await rm(workspace, { recursive: true, force: true });
    }
  };
}

/** Ends and removes what an agent that was killed left of its build. */
async function sweep(builds: string, time: Time): Promise<void> {
  await mkdir(builds, { recursive: true, mode: 0o700 });
  for (const entry of await readdir(builds, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const workspace = `${builds}/${entry.name}`;
    await stopWorkload(null, `${workspace}/home`, 0, time, new AbortController().signal);
    await rm(workspace, { recursive: true, force: true });
  }
}

/** Each attempt uses the client of its moment, and keeps it to its end. */
async function download(
  gateway: BuildDependencies['gateway'],
  lease: JobLease,
  source: SourceFile,
  time: Time,
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 1; ; failures++) {
    await rm(source.file, { force: true });
    const answer = await gateway().source(lease, source, signal);
    signal.throwIfAborted();
    if (answer.kind === 'downloaded') return;
    const reason = 'reason' in answer ? answer.reason : answer.kind;
    // The heartbeat hears of a lost lease too, and then nothing is handed in.
    const isFinal = answer.kind === 'conflict' || answer.kind === 'unauthenticated';
    if (isFinal || failures === DOWNLOAD_ATTEMPTS) throw new Error(`the source was not downloaded: ${reason}`);
    await time.pause(backoffMs(failures, time), signal);
  }
}

async function describeArtifact(path: string): Promise<JobResult<'build'>> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined || !found.isFile() || found.size === 0) {
    throw new JobFailed('work_failed', 'the build left no file at $ARTIFACT, or an empty one');
  }
  const digest = createHash('sha256');
  await pipeline(createReadStream(path), digest);
  return { artifact_sha256: digest.digest('hex'), artifact_bytes: found.size };
}
