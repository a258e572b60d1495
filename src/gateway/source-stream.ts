import type pg from 'pg';
import { reading } from './database.ts';
import type { ClaimedLease } from './leases.ts';
import type { Loader } from './loader.ts';

/** How much of a source is read and sent at once. */
const CHUNK_BYTES = 256 * 1024;

/** A source that a build may download: its digest and size. */
export interface Source {
  readonly sha256: string;
  readonly bytes: number;
}

const HELD = `
  FROM telemetry.job_leases l
  JOIN fleet.deployments d ON d.build_job_id = l.job_id
  JOIN telemetry.sources s ON s.sha256 = d.build ->> 'source_sha256'
  WHERE l.job_id = $1 AND l.node_id = $2 AND l.token_sha256 = $3 AND l.expires_at > clock_timestamp()`;

/** The source of the build whose lease is held like this; undefined where it is not, or where the source is gone. */
export async function sourceOf(
  pool: pg.Pool,
  { jobId, nodeId, tokenSha256 }: ClaimedLease,
): Promise<Source | undefined> {
  const { rows } = await reading(() =>
    pool.query<Source>({
      name: 'gateway_source',
      text: `SELECT s.sha256, length(s.body) AS bytes ${HELD}`,
      values: [jobId, nodeId, tokenSha256],
    }),
  );
  return rows[0];
}

/**
 * The bytes of a source, chunk by chunk. Before each chunk it is looked at again whether the certificate is still good and the lease still
 * held, so a revocation or a loss ends a download that runs: `cut` breaks the connection off, short of the content-length.
 */
export function streamSource(
  { pool, loader }: { readonly pool: pg.Pool; readonly loader: Loader },
  lease: ClaimedLease,
  fingerprint: string,
  { bytes }: Source,
  cut: () => void,
): ReadableStream<Uint8Array> {
  let sent = 0;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { result } = await loader.identify(fingerprint);
        const { rows } = await reading(() =>
          pool.query<{ chunk: Buffer }>({
            name: 'gateway_source_chunk',
            text: `SELECT substring(s.body FROM $4 FOR ${CHUNK_BYTES}) AS chunk ${HELD}`,
            values: [lease.jobId, lease.nodeId, lease.tokenSha256, sent + 1],
          }),
        );
        const chunk = result.ok ? rows[0]?.chunk : undefined;
        if (chunk === undefined || chunk.length === 0) {
          cut();
          controller.close();
          return;
        }
        controller.enqueue(chunk);
        sent += chunk.length;
        if (sent >= bytes) controller.close();
      },
    },
    { highWaterMark: 1 },
  );
}
