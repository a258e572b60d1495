import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLS_SERVER_OPTIONS } from '../../src/gateway/listener.ts';

/**
 * What a gateway is compared with: node:https with the same TLS and client certificates, reading each request's body and answering
 * with as many bytes as an empty lease, without looking at anything. Environment: a gateway's PKI variables.
 */
const file = (variable: string) => readFileSync(process.env[variable] ?? '');
const answer = JSON.stringify({ job: null, target_version: null, log_head: `1:1000:${'0'.repeat(32)}` });
const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) };

const server = createServer(
  {
    ...TLS_SERVER_OPTIONS,
    key: file('PUSHLEFT_GATEWAY_KEY'),
    cert: file('PUSHLEFT_GATEWAY_CERT'),
    ca: file('PUSHLEFT_AGENT_CLIENT_CA'),
    requestCert: true,
    rejectUnauthorized: true,
  },
  (request, response) => {
    request.resume().on('end', () => response.writeHead(200, headers).end(answer));
  },
);
server.listen(0, '127.0.0.1', () => {
  process.send?.({ agentUrl: `https://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
