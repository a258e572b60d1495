import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { EmbeddedIngress } from '../../../agent/ingress/embedded.ts';
import type { RouteOrder } from '../../../agent/ingress/ingress.ts';

const HOSTNAME = 'shop.example.com';
const DEPLOYMENT = '80000000-0000-4000-8000-000000000001';

let opened: Server[];
let port: number;
let ingress: EmbeddedIngress;

beforeEach(async () => {
  opened = [];
  port = await freePort();
  ingress = new EmbeddedIngress({ host: '127.0.0.1', port });
});
afterEach(async () => {
  await ingress.close();
  for (const server of opened) {
    server.closeAllConnections();
    server.close();
  }
});

async function freePort(): Promise<number> {
  const server = createTcpServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port: free } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return free;
}

/** An instance that answers as it is told. */
async function instance(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  opened.push(server);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const saying = (word: string) => instance((_, response) => void response.end(word));

const route = (ports: readonly number[], generation = 1): RouteOrder => ({
  hostname: HOSTNAME,
  deployment_id: DEPLOYMENT,
  generation,
  epoch: 1,
  upstreams: ports.map((upstream) => ({ address: '127.0.0.1', port: upstream })),
});

async function ask(options: { method?: string; host?: string; body?: string; path?: string } = {}) {
  const { method = 'GET', host = HOSTNAME, body, path = '/' } = options;
  const asking = request({ host: '127.0.0.1', port, method, path, agent: false, headers: { host } });
  asking.end(body);
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  return { status: response.statusCode, body: await text(response), headers: response.headers };
}

describe('a hostname that is served', () => {
  test('a request: answered by its instance, which hears the name and who asked', async () => {
    const upstream = await instance(({ headers, url }, response) => {
      const { host, 'x-forwarded-for': client, 'x-forwarded-proto': scheme } = headers;
      response.end(JSON.stringify({ host, client, scheme, url }));
    });
    await ingress.apply([route([upstream], 7)]);
    const { status, body, headers } = await ask({ path: '/a?b=c' });
    expect([status, headers['x-pushleft-generation']]).toEqual([200, '7']);
    expect(JSON.parse(body)).toEqual({ host: HOSTNAME, client: '127.0.0.1', scheme: 'http', url: '/a?b=c' });
  });

  test('in upper case, with a port or a dot at its end: the same hostname', async () => {
    await ingress.apply([route([await saying('hello')])]);
    const names = ['SHOP.example.com', `${HOSTNAME}:80`, `${HOSTNAME}.`];
    expect(await Promise.all(names.map(async (host) => (await ask({ host })).body))).toEqual([
      'hello',
      'hello',
      'hello',
    ]);
  });

  test('a body: goes through', async () => {
    const upstream = await instance((asked, response) => void asked.pipe(response));
    await ingress.apply([route([upstream])]);
    expect((await ask({ method: 'POST', body: 'x'.repeat(100_000) })).body).toHaveLength(100_000);
  });

  test('two instances: in turn', async () => {
    await ingress.apply([route([await saying('a'), await saying('b')])]);
    const answers = [(await ask()).body, (await ask()).body, (await ask()).body, (await ask()).body];
    expect(answers.sort()).toEqual(['a', 'a', 'b', 'b']);
  });

  test('one instance takes no connection: the other answers all', async () => {
    await ingress.apply([route([await freePort(), await saying('b')])]);
    const answers = await Promise.all(Array.from({ length: 6 }, async () => (await ask()).body));
    expect(new Set(answers)).toEqual(new Set(['b']));
  });

  test('no instance takes a connection: 502', async () => {
    await ingress.apply([route([await freePort()])]);
    const { status, headers } = await ask();
    expect([status, headers['x-pushleft-generation']]).toEqual([502, undefined]);
  });

  test('a body, and the instance takes no connection: 502, it is not sent twice', async () => {
    await ingress.apply([route([await freePort(), await saying('b')])]);
    const statuses = [
      (await ask({ method: 'POST', body: 'x' })).status,
      (await ask({ method: 'POST', body: 'x' })).status,
    ];
    expect(statuses).toEqual([502, 200]);
  });

  test('an instance breaks off before it answers: 502', async () => {
    const upstream = await instance((asked) => asked.socket.destroy());
    await ingress.apply([route([upstream])]);
    expect((await ask()).status).toBe(502);
  });

  test('an instance says nothing for too long: 504', async () => {
    await ingress.close();
    ingress = new EmbeddedIngress({ host: '127.0.0.1', port }, 50);
    await ingress.apply([route([await instance(() => undefined)])]);
    expect((await ask()).status).toBe(504);
  });

  test('another upgrade than that to a WebSocket: 501', async () => {
    await ingress.apply([route([await saying('hello')])]);
    const socket = connect(port, '127.0.0.1');
    socket.write(`GET / HTTP/1.1\r\nhost: ${HOSTNAME}\r\nupgrade: other\r\nconnection: upgrade\r\n\r\n`);
    expect(((await once(socket, 'data')) as [Buffer])[0].toString()).toContain('501');
    socket.destroy();
  });

  test('a WebSocket: bytes go both ways', async () => {
    const upstream = createServer().listen(0, '127.0.0.1');
    opened.push(upstream);
    upstream.on('upgrade', (_, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n');
      socket.pipe(socket);
    });
    await once(upstream, 'listening');
    await ingress.apply([route([(upstream.address() as AddressInfo).port])]);
    const socket = connect(port, '127.0.0.1');
    socket.write(`GET / HTTP/1.1\r\nhost: ${HOSTNAME}\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n`);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toContain('101');
    socket.write('ping');
    expect(((await once(socket, 'data')) as [Buffer])[0].toString()).toBe('ping');
    socket.destroy();
  });
});

describe('a hostname that is not served', () => {
  test('never was: 404', async () => {
    await ingress.apply([route([await saying('hello')])]);
    expect((await ask({ host: 'other.example.com' })).status).toBe(404);
  });

  test('taken away: 404 from the next request on', async () => {
    await ingress.apply([route([await saying('hello')])]);
    await ask();
    await ingress.apply([]);
    expect((await ask()).status).toBe(404);
  });

  test('an upgrade: 404', async () => {
    await ingress.apply([]);
    const socket = connect(port, '127.0.0.1');
    socket.write(`GET / HTTP/1.1\r\nhost: ${HOSTNAME}\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n`);
    expect(((await once(socket, 'data')) as [Buffer])[0].toString()).toContain('404');
    socket.destroy();
  });
});

test('requests that say their length in two ways: refused, no instance sees them', async () => {
  let asked = 0;
  const upstream = await instance((_, response) => {
    asked += 1;
    response.end();
  });
  await ingress.apply([route([upstream])]);
  const socket = connect(port, '127.0.0.1');
  socket.write(
    `POST / HTTP/1.1\r\nhost: ${HOSTNAME}\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /`,
  );
  expect(((await once(socket, 'data')) as [Buffer])[0].toString()).toContain('400');
  expect(asked).toBe(0);
  socket.destroy();
});

test('its address is taken: says so, and listens once it is free', async () => {
  const other = createServer().listen(port, '127.0.0.1');
  opened.push(other);
  await once(other, 'listening');
  await expect(ingress.apply([])).rejects.toThrow('EADDRINUSE');
  other.close();
  await once(other, 'close');
  await ingress.apply([route([await saying('hello')])]);
  expect((await ask()).body).toBe('hello');
});
