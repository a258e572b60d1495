import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HetznerClock } from '../../src/hetzner/api.ts';

/** A clock that jumps: a sleep takes no time and moves `now` by what was asked for. */
export interface JumpingClock extends HetznerClock {
  readonly slept: number[];
}

export function jumpingClock(startMs = 1_800_000_000_000): JumpingClock {
  let now = startMs;
  const slept: number[] = [];
  return {
    slept,
    now: () => now,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      slept.push(ms);
      now += ms;
    },
  };
}

/** One answer of a scripted API: `drop` cuts the connection after the request was read. */
export type ScriptedAnswer =
  | 'drop'
  | {
      readonly status: number;
      readonly body?: unknown;
      readonly text?: string;
      readonly headers?: Readonly<Record<string, string>>;
    };

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly authorization: string | undefined;
  readonly body: unknown;
}

/** An HTTP server on loopback that gives the scripted answers in order, the last one for ever, and remembers what it was asked. */
export async function scriptedApi(...answers: readonly ScriptedAnswer[]) {
  const seen: SeenRequest[] = [];
  const server = createServer((request, response) => {
    void answerOne(request, response).catch(() => response.destroy());
  });
  async function answerOne(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) chunks.push(chunk as Uint8Array);
    const text = Buffer.concat(chunks).toString();
    const { method = '', url = '' } = request;
    seen.push({
      method,
      url,
      authorization: request.headers.authorization,
      body: text === '' ? undefined : JSON.parse(text),
    });
    const answer = answers[Math.min(seen.length, answers.length) - 1];
    if (answer === undefined || answer === 'drop') {
      request.socket.destroy();
      return;
    }
    response.writeHead(answer.status, { 'content-type': 'application/json', connection: 'close', ...answer.headers });
    response.end(answer.text ?? JSON.stringify(answer.body ?? {}));
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    seen,
    baseUrl: `http://127.0.0.1:${port}/v1`,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** An error document as the API sends it. */
export function problem(status: number, code: string, headers: Readonly<Record<string, string>> = {}): ScriptedAnswer {
  return { status, body: { error: { code, message: `told: ${code}`, details: null } }, headers };
}
