import * as v from 'valibot';
import { JobFailed } from '../../job-runner.ts';
import { type DockerEngine, type EngineAnswer, expectStatus, messageOf } from './engine.ts';

/** A pull may take as long as a few gigabytes over a slow line. */
const PULL_TIMEOUT_MS = 15 * 60_000;

const StreamedProblem = v.object({ error: v.string() });

/** Pulls an image that the host does not have. Throws JobFailed `work_failed` when it cannot be had. */
export async function ensureImage(engine: DockerEngine, reference: string, signal: AbortSignal): Promise<void> {
  const found = await engine.call({ method: 'GET', path: `/images/${reference}/json`, signal });
  if (expectStatus(found, 'look for the image', 200, 404).status === 200) return;
  const path = `/images/create?fromImage=${encodeURIComponent(withTag(reference))}`;
  const pulled = await engine
    .call({ method: 'POST', path, timeoutMs: PULL_TIMEOUT_MS, signal })
    .catch((error: unknown) => {
      signal.throwIfAborted();
      throw new JobFailed('work_failed', `image ${reference} was not pulled`, { cause: error });
    });
  const problem = pullProblem(pulled);
  if (problem !== undefined) throw new JobFailed('work_failed', `image ${reference} was not pulled: ${problem}`);
}

/** Once a pull has begun, its status is 200 whatever comes; its last line tells. */
function pullProblem(answer: EngineAnswer): string | undefined {
  if (answer.status !== 200) return messageOf(answer);
  const streamed = v.safeParse(StreamedProblem, answer.body);
  return streamed.success ? streamed.output.error.slice(0, 512) : undefined;
}

/** Without tag or digest the engine would pull every tag that there is. */
function withTag(reference: string): string {
  return /[:@]/.test(reference.slice(reference.lastIndexOf('/') + 1)) ? reference : `${reference}:latest`;
}
