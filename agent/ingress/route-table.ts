import * as v from 'valibot';
import { JOB_KINDS } from '../../src/protocol/job-kinds/registry.ts';
import { JobFailed } from '../job-runner.ts';
import { replaceFile, type StateFs } from '../state-fs.ts';
import type { RouteOrder } from './ingress.ts';

const NAME = 'ingress-routes.json';
const Routes = v.array(JOB_KINDS.publish_ingress.payload);

/**
 * The latest order of each hostname, on disk before it is in force, so that a host that starts anew serves what it was told last. Of a
 * hostname that was taken away the generation stays, so that an earlier one never comes back.
 */
export class RouteTable {
  readonly #fs: StateFs;
  readonly #directory: string;
  readonly #orders: Map<string, RouteOrder>;

  private constructor(fs: StateFs, directory: string, orders: readonly RouteOrder[]) {
    this.#fs = fs;
    this.#directory = directory;
    this.#orders = new Map(orders.map((order) => [order.hostname, order]));
  }

  /** Reads the table. Throws when it is damaged: a host that forgot its generations must not guess. */
  static async open(fs: StateFs, directory: string): Promise<RouteTable> {
    const text = await fs.readText(`${directory}/${NAME}`);
    return new RouteTable(fs, directory, text === undefined ? [] : v.parse(Routes, JSON.parse(text)));
  }

  /** The routes that lead somewhere. */
  get served(): readonly RouteOrder[] {
    return [...this.#orders.values()].filter(({ upstreams }) => upstreams.length > 0);
  }

  /**
   * Keeps an order. Answers whether the hostname is served by it: not when it takes the hostname away, nor when what it takes away was
   * replaced meanwhile. Throws JobFailed `superseded` for a route that a later one has replaced.
   */
  async keep(order: RouteOrder): Promise<boolean> {
    const known = this.#orders.get(order.hostname);
    if (known !== undefined && isLater(known, order)) {
      if (order.upstreams.length === 0) return false;
      throw new JobFailed('superseded', `generation ${known.generation} of the route is here already`);
    }
    const orders = new Map(this.#orders).set(order.hostname, order);
    await this.#fs.makeDir(this.#directory);
    await replaceFile(this.#fs, this.#directory, NAME, JSON.stringify([...orders.values()]));
    this.#orders.set(order.hostname, order);
    return order.upstreams.length > 0;
  }
}

function isLater(a: RouteOrder, b: RouteOrder): boolean {
  return a.epoch > b.epoch || (a.epoch === b.epoch && a.generation > b.generation);
}
