import { CaAudit } from '../domain/ca/audit.ts';
import type { CaAuditReport } from '../domain/ca/audit-report.ts';
import { unseal } from '../log/codec.ts';
import { type ChainPoint, type ClaimedRow, GENESIS, type LogVerification, proveRows } from '../log/prove.ts';

/** How a log is audited. */
export interface AuditOptions {
  /** Prove the chain on the way: what comes behind a fault is not believed. */
  readonly prove: boolean;
  readonly checkpoints: readonly ChainPoint[];
  readonly onProgress: (position: number) => void;
}

/** What the log tells of its CA up to `position`. `proof` is null when nothing was to be proved. */
export interface AuditedCa {
  readonly report: CaAuditReport;
  readonly position: number;
  readonly proof: LogVerification | null;
}

/**
 * Replays a log from its first event, in one pass and never from tables. Throws {@link LogFormatError} for an event that cannot be read,
 * unless the chain is to be proved: then the fault is told with what was found before it.
 */
export async function auditCa(
  pages: AsyncIterable<readonly ClaimedRow[]>,
  { prove, checkpoints, onProgress }: AuditOptions,
): Promise<AuditedCa> {
  const audit = new CaAudit();
  if (prove) {
    let seen = 0;
    const proof = await proveRows(pages, GENESIS, {
      checkpoints,
      onProgress,
      onEvent: (event) => {
        audit.see(event);
        seen = event.position;
      },
    });
    return { report: audit.report(), position: seen, proof };
  }
  let position = 0;
  for await (const page of pages) {
    for (const row of page) {
      audit.see(unseal(row.position, row.body));
      position = row.position;
    }
    onProgress(position);
  }
  return { report: audit.report(), position, proof: null };
}
