import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCsr } from '../../agent/csr.ts';
import { der, sequence, TAG } from '../../src/pki/der.ts';
import {
  type CsrParts,
  commonName,
  csrDer,
  csrPem,
  dnsSan,
  extensionOf,
  extensionRequest,
  newKey,
  subjectOf,
} from '../pki/support.ts';
import { type Answered, exchange } from './support/client.ts';
import { startFleet, type TestFleet } from './support/fleet.ts';
import { dueAgent, eventsOf, told } from './support/renewal.ts';

let fleet: TestFleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** Somebody who may be given a certificate, once: sends a request, and says whether the right is still there. */
interface Sender {
  readonly nodeId: string;
  readonly send: (csrPem: string) => Promise<Answered>;
}

async function awaited(): Promise<Sender> {
  const { nodeId, secret } = await fleet.provision();
  const claim = { node_id: nodeId, enrollment_secret: secret };
  const send = (csr_pem: string) =>
    exchange(fleet.gateway.enrollUrl, '/v1/enroll', { ca: fleet.pki.bundlePem, body: { ...claim, csr_pem } });
  return { nodeId, send };
}

async function renewing(): Promise<Sender> {
  const agent = await dueAgent(fleet);
  const send = (csr_pem: string) =>
    exchange(fleet.gateway.agentUrl, '/v1/agent/certificate/renew', { ...agent, body: { csr_pem } });
  return { nodeId: agent.nodeId, send };
}

/** Text of the sender's own that no log may repeat. */
const MARK = 'never-to-be-logged';
const YES = der(TAG.boolean, Buffer.from([0xff]));
const CA_TRUE = extensionOf('2.5.29.19', sequence(YES), true);
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;

/** An honest request for a node but for some parts. */
const request = (nodeId: string, parts: CsrParts = {}) =>
  csrDer({
    subject: subjectOf([commonName(nodeId)]),
    attributes: [extensionRequest(dnsSan(nodeId))],
    ...parts,
  });

const HOSTILE: readonly (readonly [title: string, code: string, csr: (nodeId: string) => string])[] = [
  [
    'extensionRequest twice',
    'csr_duplicate_attribute',
    (id) => csrPem(request(id, { attributes: [extensionRequest(dnsSan(id)), extensionRequest(dnsSan(id))] })),
  ],
  [
    'two subjectAltName extensions',
    'csr_duplicate_extension',
    (id) => csrPem(request(id, { attributes: [extensionRequest(dnsSan(id), dnsSan(id))] })),
  ],
  [
    'two names in one subjectAltName',
    'csr_san_mismatch',
    (id) => csrPem(request(id, { attributes: [extensionRequest(dnsSan(id, MARK))] })),
  ],
  [
    'two common names',
    'csr_subject_mismatch',
    (id) => csrPem(request(id, { subject: subjectOf([commonName(id)], [commonName(id)]) })),
  ],
  [
    'two common names in one set',
    'csr_subject_mismatch',
    (id) => csrPem(request(id, { subject: subjectOf([commonName(id), commonName(id)]) })),
  ],
  [
    'NUL in the common name',
    'csr_subject_mismatch',
    (id) => csrPem(request(id, { subject: subjectOf([commonName(`${id}\0${MARK}`)]) })),
  ],
  [
    'newline in the common name',
    'csr_subject_mismatch',
    (id) => csrPem(request(id, { subject: subjectOf([commonName(`${id}\n${MARK}`)]) })),
  ],
  ['CA:TRUE', 'csr_requests_ca', (id) => csrPem(request(id, { attributes: [extensionRequest(dnsSan(id), CA_TRUE)] }))],
  ['RSA key', 'csr_key_unsupported', (id) => csrPem(request(id, { key: rsa }))],
  ['P-384 key', 'csr_key_unsupported', (id) => csrPem(request(id, { key: newKey('P-384') }))],
  ['trailing byte in the block', 'csr_malformed', (id) => csrPem(Buffer.concat([request(id), Buffer.from([0])]))],
  ['text after the block', 'csr_malformed', (id) => `${csrPem(request(id))}${MARK}\n`],
  ['two blocks', 'csr_malformed', (id) => csrPem(request(id)).repeat(2)],
  [
    'signature over something else',
    'csr_signature_invalid',
    (id) => {
      const key = newKey();
      return csrPem(request(id, { key, signature: sign('sha256', Buffer.from(MARK), key) }));
    },
  ],
  ['9 KB', 'csr_too_large', (id) => csrPem(request(id)).padEnd(9_000, '\n')],
  ['20 KB', 'invalid_request', (id) => csrPem(request(id)).padEnd(20_000, '\n')],
  ['1 MB', 'csr_too_large', () => csrPem(randomBytes(750_000))],
  ['a control character', 'invalid_request', (id) => `${csrPem(request(id))}\u0007${MARK}`],
];

describe.each([
  ['enrolment', awaited],
  ['renewal', renewing],
] as const)('%s', (_, newSender) => {
  test('every kind of bad request: 400 with its code, nothing used up, nothing of it in the log', async () => {
    const { nodeId, send } = await newSender();
    const before = await eventsOf(fleet, nodeId);
    const sent = HOSTILE.map(([title, , csr]) => ({ title, csr: csr(nodeId) }));
    const answers = [];
    for (const { title, csr } of sent) answers.push([title, ...told(await send(csr))]);
    expect(answers).toEqual(HOSTILE.map(([title, code]) => [title, 400, code]));

    expect(await eventsOf(fleet, nodeId)).toEqual(before);
    const logged = fleet.logLines.join('\n');
    for (const { title, csr } of sent) {
      const lines = csr.split('\n').filter((line) => line.length > 32 && !line.startsWith('-'));
      expect({ title, logged: lines.filter((line) => logged.includes(line)) }).toEqual({ title, logged: [] });
    }
    expect(logged).not.toContain(MARK);
    expect((await send(createCsr(nodeId, newKey()))).status).toBe(200);
  });
});
