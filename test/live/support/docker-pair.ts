import { startCaddy } from '../../host/support/caddy.ts';
import { BUSYBOX_IMAGE, startDockerd } from '../../host/support/dockerd.ts';
import type { Pair } from './pair.ts';

const SERVER =
  'mkdir -p /tmp/www && echo "$INSTANCE_ID" > /tmp/www/index.html && exec /bin/httpd -f -p "$PORT" -h /tmp/www';

/** Containers of a real engine that all hosts of the test share (labels tell whose they are), and a real Caddy. */
export async function dockerPair(): Promise<Pair> {
  const opened = new AsyncDisposableStack();
  const engine = opened.use(await startDockerd());
  const caddy = opened.use(await startCaddy());
  const containers = async (nodeId: string) => {
    const listed = await engine.docker('ps', '--all', '--quiet', '--filter', `label=pushleft.node_id=${nodeId}`);
    return listed.split('\n').filter(Boolean);
  };
  return {
    workerEnv: {
      PUSHLEFT_RUNTIME: 'docker',
      PUSHLEFT_DOCKER_SOCKET: engine.socketPath,
      PUSHLEFT_AGENT_ADVERTISE_ADDRESS: '127.0.0.1',
    },
    ingressEnv: () => ({
      PUSHLEFT_RUNTIME: 'process',
      PUSHLEFT_INGRESS: 'caddy',
      PUSHLEFT_INGRESS_BIND: `127.0.0.1:${caddy.port}`,
      PUSHLEFT_CADDY_ADMIN: caddy.adminUrl,
    }),
    ingressPort: caddy.port,
    web: { image: BUSYBOX_IMAGE, command: ['/bin/sh', '-c', SERVER] },
    async hang({ nodeId }) {
      for (const id of await containers(nodeId)) await engine.docker('pause', id);
    },
    isThere: async ({ nodeId }) => (await containers(nodeId)).length > 0,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
