import * as v from 'valibot';
import { boundedInteger, boundedText } from '../text.ts';
import { defineJobKind } from './definition.ts';

/** Every check of `pushleft-agent doctor`, in the order in which it reports them. */
export const DOCTOR_CHECKS = [
  'state_files',
  'certificate',
  'dns',
  'gateway',
  'clock',
  'disk_space',
  'data_mount',
  'docker',
  'bridge_netfilter',
] as const;
/** One of {@link DOCTOR_CHECKS}. */
export type DoctorCheck = (typeof DOCTOR_CHECKS)[number];

/** Longest detail of one finding. */
export const DETAIL_MAX_LENGTH = 256;

/** What one check found. `detail` says it in one line and never quotes a secret. */
export const DoctorFinding = v.strictObject({
  check: v.picklist(DOCTOR_CHECKS),
  status: v.picklist(['pass', 'warn', 'fail']),
  detail: boundedText(DETAIL_MAX_LENGTH),
  duration_ms: boundedInteger(0, 600_000),
});
/** What one check found. */
export type DoctorFinding = v.InferOutput<typeof DoctorFinding>;

const checks = <Item extends v.GenericSchema>(item: Item) => v.pipe(v.array(item), v.maxLength(DOCTOR_CHECKS.length));

/** The whole report; `duration_ms` is the wall time of all checks together, which run side by side. */
export const DoctorReport = v.strictObject({
  checks: checks(DoctorFinding),
  duration_ms: boundedInteger(0, 600_000),
});
/** The whole report. */
export type DoctorReport = v.InferOutput<typeof DoctorReport>;

/** Runs the agent's doctor on its host. No `checks` means all of them. */
export const diagnoseHost = defineJobKind({
  summary: "Run the agent's checks on its host and report what they find.",
  payload: v.strictObject({ checks: v.optional(checks(v.picklist(DOCTOR_CHECKS))) }),
  result: DoctorReport,
});
