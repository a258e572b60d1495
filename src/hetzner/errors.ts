/** What identifies a failed exchange with the API. `status` is null when no answer came. */
export interface HetznerFailure {
  readonly code: string;
  readonly status: number | null;
  readonly message: string;
  readonly correlationId?: string | undefined;
}

/**
 * A request that failed, with the provider's code (`not_found`, `uniqueness_error`, …) or one of ours: `timeout`, `transport_failed`,
 * `answer_unreadable`, `http_<status>`. It carries no request, no header and no cause that does: the token is in none of its parts.
 */
export class HetznerError extends Error {
  override readonly name: string = 'HetznerError';
  readonly code: string;
  readonly status: number | null;
  readonly correlationId: string | undefined;

  constructor({ code, status, message, correlationId }: HetznerFailure) {
    super(message);
    this.code = code;
    this.status = status;
    this.correlationId = correlationId;
  }
}

/**
 * A create request of which nobody can say whether it was executed: no answer, a 5xx, or a 2xx that could not be read.
 * There is no idempotency key, so the only way on is to look for the resource.
 */
export class AmbiguousCreateError extends HetznerError {
  override readonly name = 'AmbiguousCreateError';
}

/** True for an error of the API with one of the codes. */
export function hasCode(error: unknown, ...codes: readonly string[]): error is HetznerError {
  return error instanceof HetznerError && codes.includes(error.code);
}
