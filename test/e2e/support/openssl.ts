import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';

/** What openssl's own client saw: everything the server sent as application data, and how long until it closed (ms). */
export interface ClientRun {
  readonly received: string;
  readonly report: string;
  readonly closedAfterMs: number;
}

/** Paths of a client certificate, its key, and what it trusts. */
export interface ClientFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

const REQUEST = 'GET /healthz HTTP/1.1\r\nhost: gateway\r\n\r\n';

/** Connects as an agent with openssl and asks for /healthz. Ends when the server closes, or when `enough` of its answer came. */
export async function sClient(
  port: number,
  { cert, key, ca }: ClientFiles,
  more: readonly string[] = [],
  enough = (_: string) => false,
): Promise<ClientRun> {
  const args = ['-connect', `127.0.0.1:${port}`, '-cert', cert, '-key', key, '-CAfile', ca, '-ign_eof', '-quiet'];
  const startedAt = performance.now();
  const child = spawn('openssl', ['s_client', ...args, ...more]);
  let received = '';
  child.stdout.on('data', (chunk: Buffer) => {
    received += chunk.toString();
    if (enough(received)) child.kill('SIGTERM');
  });
  const report = text(child.stderr);
  child.stdin.on('error', () => undefined);
  child.stdin.write(REQUEST);
  await once(child, 'close');
  return { received, report: await report, closedAfterMs: performance.now() - startedAt };
}

/** The certificate that a TLS server presents, in PEM, as openssl sees it. */
export async function servedCertificate(port: number): Promise<string> {
  const child = spawn('openssl', ['s_client', '-connect', `127.0.0.1:${port}`]);
  child.stdin.end();
  const output = await text(child.stdout);
  return /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/.exec(output)?.[0] ?? '';
}

/** What `openssl verify` says of a certificate's file by these CAs: its output, also when it says no. */
export async function opensslVerify(caFile: string, file: string): Promise<string> {
  const run = promisify(execFile)('openssl', ['verify', '-x509_strict', '-CAfile', caFile, file]);
  return run.then(
    ({ stdout }) => stdout.trim(),
    (error: { stdout?: string; stderr?: string }) => `${error.stdout ?? ''}${error.stderr ?? ''}`.trim(),
  );
}
