import type { ContentfulStatusCode } from 'hono/utils/http-status';

/** A field of an `invalid_input` or `uniqueness_error` answer. */
interface InvalidField {
  readonly name: string;
  readonly messages: readonly string[];
}

/**
 * An answer other than 2xx, thrown by handlers and turned into `{error: {code, message, details}}` at one place
 * (hono's `onError`). Statuses and codes are those of the API's error table.
 */
export class ApiError extends Error {
  readonly status: ContentfulStatusCode;
  readonly code: string;
  readonly details: object;

  constructor(status: ContentfulStatusCode, code: string, message: string, details: object = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }

  /** The body of the answer. */
  toBody(): { error: { code: string; message: string; details: object } } {
    return { error: { code: this.code, message: this.message, details: this.details } };
  }
}

/** 404 `not_found`, as for an id that is not there. */
export const notFound = (what: string): ApiError => new ApiError(404, 'not_found', `${what} not found`);

/** 409 `uniqueness_error` for a field whose value is taken. */
export const notUnique = (field: string, message: string): ApiError =>
  new ApiError(409, 'uniqueness_error', message, { fields: [{ name: field }] });

/** 422 `invalid_input` naming every field and what is wrong with it. */
export function invalidFields(fields: readonly InvalidField[]): ApiError {
  const names = fields.map((field) => `'${field.name}'`).join(', ');
  const first = fields.length === 1 ? `: ${fields[0]?.messages[0] ?? 'invalid'}` : '';
  return new ApiError(
    422,
    'invalid_input',
    `invalid input in field${fields.length === 1 ? '' : 's'} ${names}${first}`,
    {
      fields,
    },
  );
}

/** 422 `invalid_input` about one field. */
export const invalidField = (name: string, message: string): ApiError => invalidFields([{ name, messages: [message] }]);

/** 423 `locked`: an action is running on the resource. */
export const locked = (): ApiError =>
  new ApiError(423, 'locked', 'cannot perform operation because resource is locked');
