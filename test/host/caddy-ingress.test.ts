import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { awaitServed } from '../../agent/ingress/await-served.ts';
import { CaddyIngress } from '../../agent/ingress/caddy.ts';
import type { IngressBind, RouteOrder } from '../../agent/ingress/ingress.ts';
import { systemTime } from '../../agent/time.ts';
import { type Caddy, startCaddy } from './support/caddy.ts';

const HOSTNAME = 'shop.example.com';
const NEVER = new AbortController().signal;

let caddy: Caddy;
let bind: IngressBind;
let ingress: CaddyIngress;
const instances = new AsyncDisposableStack();

beforeAll(async () => {
  caddy = await startCaddy();
  bind = { host: '127.0.0.1', port: caddy.port };
  ingress = new CaddyIngress(new URL(caddy.adminUrl), bind);
});
afterAll(async () => {
  await caddy[Symbol.asyncDispose]();
  await instances.disposeAsync();
});

async function instance(word: string): Promise<number> {
  const server = createServer((_, response) => void response.end(word)).listen(0, '127.0.0.1');
  instances.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const route = (port: number, generation = 1, hostname = HOSTNAME): RouteOrder => ({
  hostname,
  deployment_id: '80000000-0000-4000-8000-000000000001',
  generation,
  epoch: 1,
  upstreams: [{ address: '127.0.0.1', port }],
});

async function ask(host = HOSTNAME): Promise<string> {
  const asking = request({ host: '127.0.0.1', port: caddy.port, agent: false, headers: { host } });
  asking.end();
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  return text(response);
}

const config = async (): Promise<unknown> => (await fetch(`${caddy.adminUrl}/config/`)).json();

test('an empty Caddy: serves the hostname, and a request gets through', async () => {
  const one = route(await instance('first'));
  await ingress.apply([one], NEVER);
  await awaitServed(bind, one, systemTime, NEVER);
  expect(await ask()).toBe('first');
});

test('another generation, another hostname: both are served', async () => {
  const two = route(await instance('second'), 2);
  await ingress.apply([two, route(await instance('other'), 1, 'other.example.com')], NEVER);
  await awaitServed(bind, two, systemTime, NEVER);
  expect([await ask(), await ask('other.example.com')]).toEqual(['second', 'other']);
});

test('the same again: nothing is written', async () => {
  const routes = [route(await instance('third'), 3)];
  await ingress.apply(routes, NEVER);
  const etag = async () => (await fetch(`${caddy.adminUrl}/config/apps/http/servers/pushleft`)).headers.get('etag');
  const before = await etag();
  await ingress.apply(routes, NEVER);
  expect(await etag()).toBe(before);
});

test("somebody else's server: left alone", async () => {
  const theirs = { listen: ['127.0.0.1:0'], routes: [] };
  await fetch(`${caddy.adminUrl}/config/apps/http/servers/theirs`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(theirs),
  });
  await ingress.apply([route(await instance('fourth'), 4)], NEVER);
  expect(await config()).toMatchObject({ apps: { http: { servers: { theirs } } } });
});

test('Caddy forgot its configuration: told again', async () => {
  const routes = [route(await instance('fifth'), 5)];
  await ingress.apply(routes, NEVER);
  await fetch(`${caddy.adminUrl}/load`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ admin: { listen: new URL(caddy.adminUrl).host } }),
  });
  await ingress.apply(routes, NEVER);
  await awaitServed(bind, route(0, 5), systemTime, NEVER);
  expect(await ask()).toBe('fifth');
});

test('taken away: no instance answers any more', async () => {
  await ingress.apply([], NEVER);
  expect(await ask()).toBe('');
});

test('an address that Caddy cannot have: refused with its reason', async () => {
  const other = new CaddyIngress(new URL(caddy.adminUrl), { host: '203.0.113.1', port: caddy.port });
  await expect(other.apply([route(1)], NEVER)).rejects.toThrow(/Caddy answered [45]\d\d.*203\.0\.113\.1/);
});
