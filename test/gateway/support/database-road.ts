import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { inject } from 'vitest';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

/** The way from a program to the run's PostgreSQL: a socket in between that can be closed, as if the server were gone, or go silent. */
export interface DatabaseRoad extends AsyncDisposable {
  /** A database's URL by this road, from its own. */
  via(url: string): string;
  /** Breaks every connection off and takes no new one. */
  close(): Promise<void>;
  /** Takes connections again. */
  open(): Promise<void>;
  /** From now on swallows every byte of every connection, in both ways, and takes connections that it never answers. */
  silence(): void;
  /**
   * Lets the next COMMIT through, swallows what the server answers, and breaks that connection off when the server has committed.
   * `after` is called then. Resolves when it has happened.
   */
  swallowCommit(after?: () => void): Promise<void>;
}

/** Opens a road. */
export async function openRoad(): Promise<DatabaseRoad> {
  const folder = await temporaryDirectory();
  const real = hostOf(inject('superuserUrl'));
  const port = portOf(inject('superuserUrl'));
  const here = join(folder.path, `.s.PGSQL.${port}`);
  const sockets = new Set<Socket>();
  let server: Server | undefined;
  let silent = false;
  let swallowing: (() => void) | undefined;
  /** Passes answers on, until one is to be swallowed. */
  const carry = (near: Socket, far: Socket) => {
    let committing = false;
    let swallowed = '';
    near.on('data', (chunk: Buffer) => {
      if (silent) return;
      if (swallowing !== undefined && chunk.includes('COMMIT\0')) committing = true;
      far.write(chunk);
    });
    far.on('data', (chunk: Buffer) => {
      if (silent) return;
      if (!committing) {
        near.write(chunk);
        return;
      }
      swallowed += chunk.toString('latin1');
      // CommandComplete of COMMIT: its tag, ended by NUL.
      if (!swallowed.includes('COMMIT\0')) return;
      const done = swallowing;
      swallowing = undefined;
      done?.();
      near.destroy();
    });
  };
  const road: DatabaseRoad = {
    via: (url) => url.replace(encodeURIComponent(real), encodeURIComponent(folder.path)).replace(real, folder.path),
    async open() {
      server = createServer({ allowHalfOpen: true }, (near) => {
        const far = createConnection({ path: join(real, `.s.PGSQL.${port}`), allowHalfOpen: true });
        carry(near, far);
        for (const [one, other] of [
          [near, far],
          [far, near],
        ] as const) {
          sockets.add(one);
          one.on('end', () => silent || other.end());
          one.on('error', () => undefined);
          one.on('close', () => {
            sockets.delete(one);
            other.destroy();
          });
        }
      });
      server.listen(here);
      await once(server, 'listening');
    },
    async close() {
      const closed = server === undefined ? undefined : once(server, 'close');
      server?.close();
      for (const socket of sockets) socket.destroy();
      await closed;
      server = undefined;
      await rm(here, { force: true });
    },
    silence() {
      silent = true;
    },
    swallowCommit(after) {
      const { promise, resolve } = Promise.withResolvers<void>();
      swallowing = () => {
        after?.();
        resolve();
      };
      return promise;
    },
    async [Symbol.asyncDispose]() {
      if (server !== undefined) await road.close();
      await folder[Symbol.asyncDispose]();
    },
  };
  await road.open();
  return road;
}

function hostOf(url: string): string {
  return decodeURIComponent(/[?&]host=([^&]+)/.exec(url)?.[1] ?? '');
}

function portOf(url: string): string {
  return /[?&]port=(\d+)/.exec(url)?.[1] ?? '5432';
}
