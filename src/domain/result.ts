import type { RefusalCode } from './refusal.ts';

/** A value that a refusal may mention: scalars and lists of them, nothing that could carry a secret object along. */
export type RefusalDetail = string | number | boolean | null | readonly string[];

/** An expected "no": a closed code and the facts that explain it. Never thrown. */
export interface Refusal {
  readonly code: RefusalCode;
  readonly details: Readonly<Record<string, RefusalDetail>>;
}

/** A value, or the refusal that stands in its place. */
export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: Refusal };

/** Wraps a value as a successful result. */
export function ok<T>(value: T): Result<T> {
  return { ok: true, value };
}

/** Wraps a refusal as a failed result. */
export function no(code: RefusalCode, details: Refusal['details'] = {}): { ok: false; refusal: Refusal } {
  return { ok: false, refusal: { code, details } };
}
