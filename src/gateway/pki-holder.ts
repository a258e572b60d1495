import type { Logger } from 'pino';
import { type PkiPaths, readPkiFiles } from '../pki/files.ts';
import { type PkiProblem, type PkiSet, provePki } from '../pki/pki-set.ts';
import { PKI_VARIABLES } from './config.ts';
import { GatewayConfigurationError } from './listener.ts';
import { LifetimeWatch } from './pki-lifetime.ts';
import { every, type Ticker } from './ticker.ts';

/** Why the files cannot be used as they are now, and since when (ms) this is so. Free of key material. */
export interface PkiError {
  readonly code: PkiProblem['code'] | 'pki_reload_failed';
  readonly message: string;
  readonly sinceMs: number;
}

/** What a holder works with besides the files. */
export interface PkiHolderOptions {
  readonly log: Logger;
  readonly now?: () => number;
  readonly ticker?: Ticker;
}

const RELOAD_MS = 2_000;
/** Where nothing has changed the answer is known; but for a certificate whose time had not come, and for what failed here and not in the files. */
const RETRIED: ReadonlySet<PkiError['code'] | undefined> = new Set([
  'pki_certificate_not_yet_valid',
  'pki_reload_failed',
]);

/**
 * The set of PKI files in force. Every 2 s, and whenever it is asked, it reads the files again; a set that has changed is proved in full
 * before it replaces the one in force, and one that cannot be used changes nothing: it is logged once and shown until it is put right.
 * That time passes ends no set: what has run out goes on being shown, since a gateway without any would let nobody in to be helped.
 */
export class PkiHolder implements Disposable {
  readonly #paths: PkiPaths;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #lifetime: LifetimeWatch;
  readonly #followers: ((set: PkiSet) => void)[] = [];
  #current: PkiSet;
  #loadedAtMs: number;
  #error: PkiError | null = null;
  /** Of the files as they were last looked into. */
  #digest: string;
  #ticking: Disposable | undefined;
  #running: Promise<void> = Promise.resolve();
  #queued: Promise<void> | undefined;

  private constructor(paths: PkiPaths, { set, digest }: { set: PkiSet; digest: string }, options: PkiHolderOptions) {
    const { log, now = Date.now, ticker = every(RELOAD_MS) } = options;
    this.#paths = paths;
    this.#log = log;
    this.#now = now;
    this.#current = set;
    this.#digest = digest;
    this.#loadedAtMs = now();
    this.#lifetime = new LifetimeWatch(log);
    this.#lifetime.look(set.serving, now());
    this.#ticking = ticker(() => this.reload());
  }

  /** Loads the files for the first time. Throws {@link GatewayConfigurationError}, naming the setting, when they cannot be used. */
  static async open(paths: PkiPaths, options: PkiHolderOptions): Promise<PkiHolder> {
    const files = await readPkiFiles(paths);
    const loading = await provePki(files, (options.now ?? Date.now)());
    if (loading.ok) return new PkiHolder(paths, { set: loading.pki, digest: files.digest }, options);
    const { path, message } = loading.problem;
    const named = (Object.keys(PKI_VARIABLES) as (keyof PkiPaths)[]).find((name) => paths[name] === path);
    throw new GatewayConfigurationError(named === undefined ? message : `${PKI_VARIABLES[named]}: ${message}`);
  }

  /** The set in force: to be asked anew for every use. */
  get current(): PkiSet {
    return this.#current;
  }

  /** When the set in force was loaded. */
  get loadedAtMs(): number {
    return this.#loadedAtMs;
  }

  /** Why the files as they are now are not in force; null when they are. */
  get error(): PkiError | null {
    return this.#error;
  }

  /** Has `apply` called with every set that comes into force from now on, in the same turn. */
  follow(apply: (set: PkiSet) => void): void {
    this.#followers.push(apply);
  }

  /**
   * Looks at the files as they are now: resolves when a look that began after this call is done. Two looks never overlap, and callers that
   * wait share one. Never rejects.
   */
  reload(): Promise<void> {
    this.#queued ??= this.#running.then(() => {
      this.#queued = undefined;
      this.#running = this.#look();
      return this.#running;
    });
    return this.#queued;
  }

  /** Looks no more. */
  [Symbol.dispose](): void {
    this.#ticking?.[Symbol.dispose]();
    this.#ticking = undefined;
  }

  async #look(): Promise<void> {
    try {
      const files = await readPkiFiles(this.#paths);
      if (files.digest !== this.#digest || RETRIED.has(this.#error?.code)) {
        this.#digest = files.digest;
        const loading = await provePki(files, this.#now(), this.#current);
        if (loading.ok) this.#replace(loading.pki);
        else this.#keep(loading.problem);
      }
    } catch (error) {
      if (this.#error?.code !== 'pki_reload_failed') this.#log.error({ err: error }, 'reloading the PKI files failed');
      this.#keep({
        code: 'pki_reload_failed',
        message: 'reloading failed for a reason that the log of the gateway tells',
      });
    }
    this.#lifetime.look(this.#current.serving, this.#now());
  }

  #replace(set: PkiSet): void {
    for (const apply of this.#followers) apply(set);
    this.#current = set;
    this.#loadedAtMs = this.#now();
    this.#error = null;
    const { signer, trustedCaSha256s, serving } = set;
    this.#log.info(
      { issuer: signer.caSha256, trusted: trustedCaSha256s, serving: serving.fingerprintSha256 },
      'the PKI files have changed and are in force',
    );
  }

  #keep({ code, message }: Omit<PkiError, 'sinceMs'>): void {
    if (this.#error?.code === code && this.#error.message === message) return;
    this.#error = { code, message, sinceMs: this.#now() };
    this.#log.error(
      { code },
      `the PKI files have changed and cannot be used, the last good ones stay in force: ${message}`,
    );
  }
}
