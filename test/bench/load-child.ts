import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import { leaseRequest } from '../gateway/support/client.ts';
import { answerQuestions } from './child.ts';
import type { BenchAgent } from './gateway-fleet.ts';

/** What is asked of this process: empty leases from each agent on a connection of its own, for a while. */
export interface LoadOrder {
  readonly url: string;
  readonly agents: readonly BenchAgent[];
  readonly durationMs: number;
}

/**
 * Makes lease requests over mTLS as cheaply as it can, so that it is the server that is measured: raw sockets, requests made in advance
 * but for their id, answers looked at for their status and length alone.
 */
answerQuestions(async (order) => {
  const { url, agents, durationMs } = order as LoadOrder;
  const sockets = await Promise.all(agents.map((agent) => open(new URL(url), agent)));
  const started = performance.now();
  const counts = await Promise.all(sockets.map((socket) => keepAsking(socket, started + durationMs)));
  const requestsPerSecond = (counts.reduce((sum, count) => sum + count, 0) * 1_000) / (performance.now() - started);
  for (const socket of sockets) socket.destroy();
  return { requestsPerSecond };
});
process.send?.('ready');

async function open({ hostname, port }: URL, { ca, cert, key }: BenchAgent): Promise<TLSSocket> {
  const socket = connect({ host: hostname, port: Number(port), ca, cert, key });
  await once(socket, 'secureConnect');
  socket.setNoDelay(true);
  return socket;
}

function keepAsking(socket: TLSSocket, deadline: number): Promise<number> {
  const { request, renew } = prepareRequest();
  return new Promise((resolve, reject) => {
    let answered = 0;
    let received = '';
    const ask = () => {
      renew(answered);
      socket.write(request);
    };
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      if (!isWhole(received)) return;
      if (!received.startsWith('HTTP/1.1 200 ')) reject(new Error(`a lease was answered ${received.slice(0, 200)}`));
      received = '';
      answered += 1;
      if (performance.now() < deadline) ask();
      else resolve(answered);
    });
    socket.once('close', () => reject(new Error('the server closed a connection')));
    ask();
  });
}

/** A request whose id `renew` changes in place: its last twelve digits count. */
function prepareRequest(): { request: Buffer; renew: (count: number) => void } {
  const id = randomUUID();
  const body = JSON.stringify({ ...leaseRequest(), request_id: id });
  const head = `POST /v1/agent/lease HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  const request = Buffer.from(head + body);
  const at = request.indexOf(id) + 24;
  return { request, renew: (count) => void request.write(count.toString(16).padStart(12, '0'), at, 'latin1') };
}

function isWhole(received: string): boolean {
  const end = received.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = /content-length: (\d+)/i.exec(received)?.[1];
  if (length === undefined) throw new Error('an answer without its length');
  return received.length >= end + 4 + Number(length);
}
