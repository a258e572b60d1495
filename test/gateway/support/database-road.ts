import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { inject } from 'vitest';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

/** The way from a gateway to the run's PostgreSQL: a socket in between that can be closed, as if the server were gone. */
export interface DatabaseRoad extends AsyncDisposable {
  /** A database's URL by this road, from its own. */
  via(url: string): string;
  /** Breaks every connection off and takes no new one. */
  close(): Promise<void>;
  /** Takes connections again. */
  open(): Promise<void>;
}

/** Opens a road. */
export async function openRoad(): Promise<DatabaseRoad> {
  const folder = await temporaryDirectory();
  const real = hostOf(inject('superuserUrl'));
  const port = portOf(inject('superuserUrl'));
  const here = join(folder.path, `.s.PGSQL.${port}`);
  const sockets = new Set<Socket>();
  let server: Server | undefined;
  const road: DatabaseRoad = {
    via: (url) => url.replace(encodeURIComponent(real), encodeURIComponent(folder.path)).replace(real, folder.path),
    async open() {
      server = createServer((near) => {
        const far = createConnection(join(real, `.s.PGSQL.${port}`));
        for (const [one, other] of [
          [near, far],
          [far, near],
        ] as const) {
          sockets.add(one);
          one.pipe(other);
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
