import type { Drain } from '../../src/domain/node/state.ts';
import type { ListedNode } from '../../src/read/fleet-list.ts';
import { isoTime } from './format.ts';

/** What jobs may use of a node: `2 / 4096 MB / 40 GB`. */
export function cpus(cpuMillis: number | null): string {
  return cpuMillis === null ? '-' : String(cpuMillis / 1_000);
}

/** Megabytes as gigabytes with one digit: `3.5 GB`. */
export function memory(memoryMb: number | null): string {
  return memoryMb === null ? '-' : `${Math.round((memoryMb / 1_024) * 10) / 10} GB`;
}

/** Whole gigabytes. */
export function disk(diskGb: number | null): string {
  return diskGb === null ? '-' : `${diskGb} GB`;
}

/**
 * A node for --json: the projection's row with times in ISO 8601, without the hashes of armed secrets, and `telemetry`, which is null
 * in the past.
 */
export function nodeJson({ node, liveness, lastSeenAt, used }: ListedNode, live: boolean) {
  const { armed_secrets: secrets, conflict, host_facts_at, requested_at, enrolled_at, admitted_at, ...rest } = node;
  const { drain, reclamation: _, retired_at, ...row } = rest;
  return {
    ...row,
    used,
    drain: drain === null ? null : drainJson(drain),
    retired_at: isoTime(retired_at),
    conflict: conflict === null ? null : { ...conflict, seen_at: isoTime(conflict.seen_at) },
    enrollment_secrets_expire_at: secrets.map(({ expires_at }) => isoTime(expires_at)),
    host_facts_at: isoTime(host_facts_at),
    requested_at: isoTime(requested_at),
    enrolled_at: isoTime(enrolled_at),
    admitted_at: isoTime(admitted_at),
    telemetry: live
      ? { last_seen_at: isoTime(lastSeenAt), data_disk_free_gb: liveness?.data_disk_free_gb ?? null }
      : null,
  };
}

function drainJson({ started_at, deadline_at, overdue_at, ...drain }: Drain) {
  return {
    ...drain,
    started_at: isoTime(started_at),
    deadline_at: isoTime(deadline_at),
    overdue_at: isoTime(overdue_at),
  };
}
