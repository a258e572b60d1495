import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type ContainerConfig, Containers, type Reply, refusal } from './containers.ts';

/** What happens instead of an answer: another one, none ever, or the end of the connection. */
export type Fault = Reply | 'hold' | 'drop';

/** A call as the stub was sent it, "POST /containers/create". */
export interface Call {
  readonly name: string;
  readonly url: URL;
  readonly body: unknown;
}

/** Docker's Engine API on a unix socket, as far as the agent uses it. Its containers are entries in a table. */
export interface DockerStub extends AsyncDisposable {
  readonly containers: Containers;
  /** Every call, in order. */
  readonly calls: readonly Call[];
  /** Versions as `/version` tells them. */
  versions: { readonly ApiVersion: string; readonly MinAPIVersion?: string };
  /** What a registry would have; a pull of anything else fails in its stream, as the engine tells it. */
  readonly registry: Set<string>;
  /** The next call of this name meets the fault; it is carried out before when `after` is set. */
  failNext(name: RegExp, fault: Fault, when?: { readonly after: boolean }): void;
}

interface PlannedFault {
  readonly name: RegExp;
  readonly fault: Fault;
  readonly after: boolean;
}

/** Listens on the socket. */
export async function startDockerStub(socketPath: string): Promise<DockerStub> {
  const containers = new Containers();
  const calls: Call[] = [];
  const faults: PlannedFault[] = [];
  const stub = {
    containers,
    calls,
    versions: { ApiVersion: '1.41', MinAPIVersion: '1.12' } as DockerStub['versions'],
    registry: new Set<string>(),
    failNext: (name: RegExp, fault: Fault, { after } = { after: false }) => void faults.push({ name, fault, after }),
  };
  const server = createServer((request, response) => void serve(request, response));

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = Buffer.concat(await request.toArray()).toString();
    const url = new URL(request.url ?? '/', 'http://docker');
    const version = /^\/v(\d+\.\d+)\//.exec(url.pathname)?.[1];
    const path = url.pathname.replace(/^\/v\d+\.\d+/, '');
    const call = { name: `${request.method} ${path}`, url, body: text === '' ? undefined : JSON.parse(text) };
    calls.push(call);
    const { MinAPIVersion: oldest } = stub.versions;
    if (version !== undefined && oldest !== undefined && version.localeCompare(oldest, 'en', { numeric: true }) < 0) {
      const message = `client version ${version} is too old. Minimum supported API version is ${oldest}`;
      return send(response, refusal(400, message));
    }
    const index = faults.findIndex(({ name }) => name.test(call.name));
    const [planned] = index < 0 ? [] : faults.splice(index, 1);
    const reply = planned?.after === false ? undefined : answer(call, path, stub);
    send(response, planned?.fault ?? reply ?? refusal(404, 'page not found'));
  }

  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return Object.assign(stub, {
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

type Tables = Pick<DockerStub, 'containers' | 'registry' | 'versions'>;

function answer({ name, url, body }: Call, path: string, { containers, registry, versions }: Tables): Reply {
  const [, kind, idOrName = ''] = path.split('/');
  if (name === 'GET /version') return { status: 200, body: versions };
  if (name === 'GET /containers/json') return containers.list(labelsOf(url));
  if (name === 'POST /containers/create')
    return containers.create(url.searchParams.get('name') ?? '', body as ContainerConfig);
  if (name === 'POST /images/create') return pull(url.searchParams.get('fromImage') ?? '', containers, registry);
  if (kind === 'images') {
    const image = path.replace(/^\/images\/(.*)\/json$/, '$1');
    return containers.images.has(image) ? { status: 200, body: {} } : refusal(404, `No such image: ${image}`);
  }
  if (kind !== 'containers') return refusal(404, 'page not found');
  if (name.startsWith('DELETE ')) return containers.remove(idOrName, url.searchParams.get('force') === 'true');
  if (name.endsWith('/start')) return containers.start(idOrName);
  if (name.endsWith('/stop')) return containers.stop(idOrName);
  return containers.inspect(idOrName);
}

/** Progress, one object a line; its status was sent before anything went wrong. */
function pull(reference: string, containers: Containers, registry: ReadonlySet<string>): Reply {
  const progress = { status: `Pulling from ${reference}` };
  if (!registry.has(reference)) {
    const message = `manifest for ${reference} not found: manifest unknown`;
    return { status: 200, body: [progress, { errorDetail: { message }, error: message }] };
  }
  containers.images.add(reference);
  return { status: 200, body: [progress, { status: `Status: Downloaded newer image for ${reference}` }] };
}

function labelsOf(url: URL): readonly string[] {
  const { label = [] } = JSON.parse(url.searchParams.get('filters') ?? '{}') as { label?: string[] };
  return label;
}

function send(response: ServerResponse, fault: Fault): void {
  if (fault === 'hold') return;
  if (fault === 'drop') {
    response.socket?.destroy();
    return;
  }
  const { status, body } = fault;
  response.writeHead(status, { 'content-type': 'application/json' });
  const lines = Array.isArray(body) && response.req.url?.includes('/images/create') ? body : [body];
  response.end(body === undefined ? undefined : lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}
