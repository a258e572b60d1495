import * as v from 'valibot';
import { createHetznerStub, type HetznerStub, type HetznerStubOptions } from '../../../stubs/hetzner/stub.ts';

/** 2026-11-30 00:00 UTC: the moment at which the stub's clock stands until a test moves it. */
export const START_MS = Date.UTC(2026, 10, 30);
/** How long an action runs in these tests, in milliseconds of the stub's clock. */
export const ACTION_MS = 1000;

/** A server creation that the API accepts. */
export const SERVER = { name: 'app-1', server_type: 'cx23', image: 'ubuntu-24.04', location: 'fsn1' };

export interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Headers;
}

/** A listening stub whose clock moves only by `advance`; `await using` closes it. */
export interface TestStub extends AsyncDisposable {
  readonly stub: HetznerStub;
  readonly url: string;
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  advance(ms: number): void;
  /** Creates a resource and returns its id; throws unless the API answers 201. */
  create(kind: Kind, body: object): Promise<number>;
}

const RESOURCES = {
  servers: 'server',
  firewalls: 'firewall',
  placement_groups: 'placement_group',
  ssh_keys: 'ssh_key',
};
type Kind = keyof typeof RESOURCES;

export async function startStub(options: HetznerStubOptions = {}): Promise<TestStub> {
  let nowMs = START_MS;
  const stub = createHetznerStub({ nowMs: () => nowMs, actionMs: ACTION_MS, ...options });
  const { url, close } = await stub.listen();
  const call: TestStub['call'] = async (method, path, body, headers = {}) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: 'Bearer test', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text), headers: response.headers };
  };
  return {
    stub,
    url,
    call,
    advance: (ms) => {
      nowMs += ms;
    },
    async create(kind, body) {
      const answer = await call('POST', `/${kind}`, body);
      if (answer.status !== 201) throw new Error(`${kind}: ${JSON.stringify(answer.body)}`);
      const resource = v.parse(v.record(v.string(), v.unknown()), answer.body)[RESOURCES[kind]];
      return v.parse(v.object({ id: v.number() }), resource).id;
    },
    [Symbol.asyncDispose]: close,
  };
}

/** The code of an error answer. */
export const codeOf = ({ body }: Answer): string =>
  v.parse(v.object({ error: v.object({ code: v.string() }) }), body).error.code;

/** Status, code and the names of the fields of an `invalid_input` answer. */
export function refusalOf(answer: Answer): { status: number; code: string; fields: string[] } {
  const Details = v.object({ fields: v.optional(v.array(v.object({ name: v.string() })), []) });
  const { code, details } = v.parse(
    v.object({ error: v.object({ code: v.string(), details: Details }) }),
    answer.body,
  ).error;
  return { status: answer.status, code, fields: details.fields.map(({ name }) => name) };
}

/** The names in a list answer. */
export function namesOf({ body }: Answer, key: string): string[] {
  const list = v.parse(v.record(v.string(), v.unknown()), body)[key];
  return v.parse(v.array(v.object({ name: v.string() })), list).map(({ name }) => name);
}
