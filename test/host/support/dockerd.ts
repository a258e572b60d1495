import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { waitFor } from '../../support/wait-for.ts';

const run = promisify(execFile);

const DOCKERD = 'dockerd';

/** The one image that the engine has: Debian's busybox with its applets in /bin. */
export const BUSYBOX_IMAGE = 'pushleft-test:1';

const APPLETS = ['sh', 'sleep', 'httpd', 'mkdir', 'cat'];

/** A real engine with a data root, a socket and networks (none) of its own. */
export interface Dockerd extends AsyncDisposable {
  readonly socketPath: string;
  /** Debian's docker, pointed at it; answers standard output. */
  docker(...args: readonly string[]): Promise<string>;
  /** Ends the engine as SIGTERM does, and its containers with it; it can be started again. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** Starts the engine of Debian's docker.io with an image of busybox-static. Needs root. */
export async function startDockerd(): Promise<Dockerd> {
  if (process.getuid?.() !== 0) throw new Error('a Docker engine of its own needs root');
  await run(DOCKERD, ['--version']).catch((cause: unknown) => {
    throw new Error('dockerd is missing: apt-get install docker.io', { cause });
  });
  const folder = await temporaryDirectory();
  const at = (name: string) => `${folder.path}/${name}`;
  const socketPath = at('docker.sock');
  const docker = (...args: readonly string[]) =>
    run('docker', ['--host', `unix://${socketPath}`, ...args]).then(({ stdout }) => stdout);
  let stop = async () => {};
  const start = async () => {
    const args = ['--data-root', at('data'), '--exec-root', at('exec'), '--pidfile', at('pid')];
    const none = ['--host', `unix://${socketPath}`, '--iptables=false', '--bridge=none'];
    const child = spawn(DOCKERD, [...args, ...none], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-4_000)));
    const exited = once(child, 'exit');
    stop = async () => {
      child.kill('SIGTERM');
      await exited;
    };
    await waitFor(() => docker('version'), { what: 'the engine answers', deadlineMs: 60_000 }).catch(
      (cause: unknown) => {
        throw new Error(`dockerd said only:\n${said}`, { cause });
      },
    );
  };
  await start();
  await importBusybox(at('image'), docker);
  return {
    socketPath,
    docker,
    start,
    stop: () => stop(),
    [Symbol.asyncDispose]: async () => {
      const ids = (await docker('ps', '--all', '--quiet')).split('\n').filter(Boolean);
      if (ids.length > 0) await docker('rm', '--force', ...ids);
      await stop();
      // The engine leaves this mount behind, whatever its containers did.
      await run('umount', [at('exec/netns/default')]).catch(() => undefined);
      await folder[Symbol.asyncDispose]();
    },
  };
}

async function importBusybox(root: string, docker: Dockerd['docker']): Promise<void> {
  await mkdir(`${root}/bin`, { recursive: true });
  await mkdir(`${root}/tmp`, { mode: 0o777 });
  const busybox = await readFile('/bin/busybox').catch((cause: unknown) => {
    throw new Error('busybox is missing: apt-get install busybox-static', { cause });
  });
  await writeFile(`${root}/bin/busybox`, busybox, { mode: 0o755 });
  for (const applet of APPLETS) await symlink('busybox', `${root}/bin/${applet}`);
  await run('tar', ['-C', root, '-cf', `${root}.tar`, '.']);
  await docker('import', `${root}.tar`, BUSYBOX_IMAGE);
}
