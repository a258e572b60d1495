import * as v from 'valibot';
import { EnrollResponse } from './enroll.ts';
import { CSR_PEM_MAX_LENGTH } from './limits.ts';
import { asciiLines } from './text.ts';

/**
 * `POST /v1/agent/certificate/renew`. Whose certificate it will be is told by the connection; the request's CN and SAN must agree.
 * The same key again means "the answer was lost": it gets the same certificate while that one is unused.
 */
export const RenewRequest = v.strictObject({ csr_pem: asciiLines(CSR_PEM_MAX_LENGTH) });
/** `POST /v1/agent/certificate/renew`. */
export type RenewRequest = v.InferOutput<typeof RenewRequest>;

/** 200 of a renewal: the same as of an enrolment. */
export const RenewResponse = EnrollResponse;
/** 200 of a renewal. */
export type RenewResponse = v.InferOutput<typeof RenewResponse>;
