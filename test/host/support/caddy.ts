import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { waitFor } from '../../support/wait-for.ts';

/** A real Caddy with an empty configuration. */
export interface Caddy extends AsyncDisposable {
  /** Where its admin API listens, as PUSHLEFT_CADDY_ADMIN takes it. */
  readonly adminUrl: string;
  /** A free port that tests may have it listen on. */
  readonly port: number;
}

/** Starts Debian's caddy with an admin API of its own, and nothing that it serves yet. */
export async function startCaddy(): Promise<Caddy> {
  await promisify(execFile)('caddy', ['version']).catch((cause: unknown) => {
    throw new Error('caddy is missing: apt-get install caddy', { cause });
  });
  const folder = await temporaryDirectory();
  const [adminPort, port] = [await freePort(), await freePort()];
  const env = { ...process.env, HOME: folder.path, XDG_DATA_HOME: folder.path, XDG_CONFIG_HOME: folder.path };
  const child = spawn('caddy', ['run', '--config', '-'], {
    env: { ...env, CADDY_ADMIN: `127.0.0.1:${adminPort}` },
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-4_000)));
  const exited = once(child, 'exit');
  child.stdin.end(JSON.stringify({ admin: { listen: `127.0.0.1:${adminPort}` } }));
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  await waitFor(() => fetch(`${adminUrl}/config/`).then(({ ok }) => ok), { what: 'caddy answers' }).catch(
    (cause: unknown) => {
      throw new Error(`caddy said only:\n${said}`, { cause });
    },
  );
  return {
    adminUrl,
    port,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await exited;
      await folder[Symbol.asyncDispose]();
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
