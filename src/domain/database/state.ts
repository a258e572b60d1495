/** Where a database is. `stranded` is on a lost node with its data, and what it holds there stays held until an operator releases it. */
export type DatabaseStatus = 'creating' | 'ready' | 'error' | 'stranded' | 'released';

/** A database: the row of `database_instances`. */
export interface DatabaseState {
  readonly database_id: string;
  readonly name: string;
  readonly node_id: string;
  readonly job_id: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly cpu_millis: number;
  readonly memory_mb: number;
  readonly disk_gb: number;
  readonly timeout_seconds: number;
  readonly status: DatabaseStatus;
  readonly address: string | null;
  readonly port: number | null;
  readonly failure_reason: string | null;
  readonly created_at: number;
  readonly ready_at: number | null;
  readonly ended_at: number | null;
}
