import { randomBytes } from 'node:crypto';

/** What an engine answers: a status, and a body where the API documents one. */
export interface Reply {
  readonly status: number;
  readonly body?: unknown;
}

/** The body of a creation, as far as it is looked at; the whole is kept. */
export interface ContainerConfig {
  readonly Image?: string;
  readonly Labels?: Record<string, string>;
  readonly [field: string]: unknown;
}

interface Container {
  readonly id: string;
  readonly name: string;
  /** The body that it was created with. */
  readonly config: ContainerConfig;
  status: 'created' | 'running' | 'exited' | 'removing';
  exitCode: number;
}

/** The containers of an engine and what its API (1.41, "Containers") documents of their lives. Nothing is run. */
export class Containers {
  readonly images = new Set<string>();
  readonly #containers = new Map<string, Container>();

  /** Every container, as it was created and as it is. */
  get all(): readonly Readonly<Container>[] {
    return [...this.#containers.values()];
  }

  create(name: string, config: ContainerConfig): Reply {
    const { Image = '' } = config;
    if (!this.images.has(Image)) return refusal(404, `No such image: ${Image}`);
    const holder = this.#find(name);
    if (holder !== undefined) {
      return refusal(409, `Conflict. The container name "/${name}" is already in use by container "${holder.id}".`);
    }
    const id = randomBytes(32).toString('hex');
    this.#containers.set(id, { id, name, config, status: 'created', exitCode: 0 });
    return { status: 201, body: { Id: id, Warnings: [] } };
  }

  inspect(idOrName: string): Reply {
    const container = this.#find(idOrName);
    if (container === undefined) return noSuch(idOrName);
    const { id, name, config, status, exitCode } = container;
    const state = { Status: status, Running: status === 'running', Restarting: false, ExitCode: exitCode };
    return { status: 200, body: { Id: id, Name: `/${name}`, State: state, Config: { Labels: config.Labels ?? {} } } };
  }

  /** Those that carry every label of the filter, `name=value`. */
  list(labels: readonly string[]): Reply {
    const carries = ({ config }: Container, label: string) => {
      const [name = '', value] = label.split('=');
      return config.Labels?.[name] === value;
    };
    const found = this.all.filter((container) => labels.every((label) => carries(container, label)));
    return {
      status: 200,
      body: found.map(({ id, name, config }) => ({ Id: id, Names: [`/${name}`], Labels: config.Labels ?? {} })),
    };
  }

  start(idOrName: string): Reply {
    const container = this.#find(idOrName);
    if (container === undefined) return noSuch(idOrName);
    if (container.status === 'running') return { status: 304 };
    container.status = 'running';
    return { status: 204 };
  }

  stop(idOrName: string): Reply {
    const container = this.#find(idOrName);
    if (container === undefined) return noSuch(idOrName);
    if (container.status !== 'running') return { status: 304 };
    this.exit(idOrName, 0);
    return { status: 204 };
  }

  remove(idOrName: string, force: boolean): Reply {
    const container = this.#find(idOrName);
    if (container === undefined) return noSuch(idOrName);
    if (container.status === 'removing') {
      return refusal(409, `removal of container ${idOrName} is already in progress`);
    }
    if (container.status === 'running' && !force) {
      return refusal(
        409,
        `You cannot remove a running container ${container.id}. Stop the container before attempting removal`,
      );
    }
    this.#containers.delete(container.id);
    return { status: 204 };
  }

  /** The container's process ends by itself. */
  exit(idOrName: string, exitCode: number): void {
    const container = this.#find(idOrName);
    if (container === undefined) throw new Error(`no container ${idOrName}`);
    container.status = 'exited';
    container.exitCode = exitCode;
  }

  /** Its removal has begun, and ends `afterMs` later. */
  beginRemoval(idOrName: string, afterMs: number): void {
    const container = this.#find(idOrName);
    if (container === undefined) throw new Error(`no container ${idOrName}`);
    container.status = 'removing';
    setTimeout(() => this.#containers.delete(container.id), afterMs);
  }

  #find(idOrName: string): Container | undefined {
    return this.#containers.get(idOrName) ?? this.all.find(({ name }) => name === idOrName);
  }
}

function noSuch(idOrName: string): Reply {
  return refusal(404, `No such container: ${idOrName}`);
}

/** An error as the API words every one. */
export function refusal(status: number, message: string): Reply {
  return { status, body: { message } };
}
