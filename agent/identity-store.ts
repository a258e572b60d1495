import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  X509Certificate,
} from 'node:crypto';
import { hasCode, replaceFile, type StateFs } from './state-fs.ts';

/** Who the agent is to the gateway, as staged on disk. */
export interface Identity {
  readonly generation: number;
  readonly keyPem: string;
  readonly certificatePem: string;
  /** The bundle that the gateway is verified with. */
  readonly caPem: string;
  readonly certificate: X509Certificate;
}

/** What the gateway answers an enrolment with, as far as it is staged. */
export interface EnrollAnswer {
  readonly certificatePem: string;
  readonly caPem: string;
}

/** A generation that has a key and waits for its certificate. */
export interface PendingKey {
  readonly generation: number;
  readonly key: KeyObject;
  /** The answer of an earlier run that died before it switched. */
  readonly answer: EnrollAnswer | undefined;
}

/**
 * `<state>/enrollment-secret` and `<state>/pki`, where each identity is a directory of its own:
 *
 *     pki/generations/<n>/{key.pem,certificate.pem,gateway-ca.pem,enrollment.sha256}
 *     pki/current -> generations/<n>
 *
 * One rename of the link switches key, certificate and bundle together, so that no reader ever sees a mixture.
 * Files are 0600, directories 0700. Every method may be cut at any step and run again.
 */
export class IdentityStore {
  readonly #fs: StateFs;
  readonly #state: string;
  readonly #pki: string;
  readonly #generations: string;

  constructor(fs: StateFs, stateDir: string) {
    this.#fs = fs;
    this.#state = stateDir;
    this.#pki = `${stateDir}/pki`;
    this.#generations = `${stateDir}/pki/generations`;
  }

  /** The identity in force; undefined when there is none. Throws when what is staged cannot be read as one. */
  async current(): Promise<Identity | undefined> {
    const generation = await this.#currentGeneration();
    if (generation === undefined) return undefined;
    const [keyPem, certificatePem, caPem] = await Promise.all([
      this.#read(generation, 'key.pem'),
      this.#read(generation, 'certificate.pem'),
      this.#read(generation, 'gateway-ca.pem'),
    ]);
    if (keyPem === undefined || certificatePem === undefined || caPem === undefined) {
      throw new Error(`${this.#pki}/current points to a generation that is not complete`);
    }
    return { generation, keyPem, certificatePem, caPem, certificate: new X509Certificate(certificatePem) };
  }

  /** The enrolment secret; undefined when there is none. */
  async secret(): Promise<string | undefined> {
    return (await this.#fs.readText(`${this.#state}/enrollment-secret`))?.trim();
  }

  /**
   * A key on disk for this secret: the one of an earlier run, because the gateway may have bound the secret to it, or a
   * new one. When this returns, the key survives a power cut.
   */
  async pendingKey(secret: string): Promise<PendingKey> {
    const digest = createHash('sha256').update(secret).digest('hex');
    for (;;) {
      const pending = await this.#findPending(digest);
      if (pending !== undefined) return pending;
      await this.#stageKey(digest);
    }
  }

  /** Stages what the gateway answered beside the key, then makes that generation the identity in force. */
  async activate(generation: number, certificatePem: string, caPem: string): Promise<void> {
    const directory = `${this.#generations}/${generation}`;
    await replaceFile(this.#fs, directory, 'certificate.pem', certificatePem);
    await replaceFile(this.#fs, directory, 'gateway-ca.pem', caPem);
    const link = `${this.#pki}/.current.${process.pid}.tmp`;
    await this.#fs.remove(link);
    await this.#fs.makeLink(`generations/${generation}`, link);
    await this.#fs.rename(link, `${this.#pki}/current`);
    await this.#fs.syncDir(this.#pki);
  }

  /** Removes the secret, then every generation and left-over but the identity in force. Repeating it is harmless. */
  async tidy(): Promise<void> {
    await this.#fs.remove(`${this.#state}/enrollment-secret`);
    await this.#fs.syncDir(this.#state);
    const current = await this.#currentGeneration();
    for (const name of await this.#fs.list(this.#generations)) {
      if (name !== String(current)) await this.#fs.remove(`${this.#generations}/${name}`);
    }
    for (const name of await this.#fs.list(this.#pki)) {
      if (name.endsWith('.tmp')) await this.#fs.remove(`${this.#pki}/${name}`);
    }
  }

  /** The directory appears whole or not at all: it is filled and synced under another name first. */
  async #stageKey(digest: string): Promise<void> {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const staging = `${this.#generations}/.staging-${randomBytes(8).toString('hex')}.tmp`;
    await this.#fs.makeDir(staging);
    await this.#fs.writeSynced(`${staging}/key.pem`, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
    await this.#fs.writeSynced(`${staging}/enrollment.sha256`, `${digest}\n`);
    await this.#fs.syncDir(staging);
    const next = Math.max(0, ...(await this.#numbers())) + 1;
    try {
      await this.#fs.rename(staging, `${this.#generations}/${next}`);
    } catch (error) {
      // Another enrolment of the same host was faster; its key serves both.
      if (!hasCode(error, 'ENOTEMPTY') && !hasCode(error, 'EEXIST')) throw error;
      await this.#fs.remove(staging);
    }
    await this.#fs.syncDir(this.#generations);
    await this.#fs.syncDir(this.#pki);
    await this.#fs.syncDir(this.#state);
  }

  async #findPending(digest: string): Promise<PendingKey | undefined> {
    // The one in force too: another run of the same host may have just made it so, with this very secret.
    const current = (await this.#currentGeneration()) ?? 0;
    for (const generation of (await this.#numbers()).filter((number) => number >= current)) {
      const [keyPem, marker, certificatePem, caPem] = await Promise.all([
        this.#read(generation, 'key.pem'),
        this.#read(generation, 'enrollment.sha256'),
        this.#read(generation, 'certificate.pem'),
        this.#read(generation, 'gateway-ca.pem'),
      ]);
      if (keyPem === undefined || marker?.trim() !== digest) continue;
      const answer = certificatePem === undefined || caPem === undefined ? undefined : { certificatePem, caPem };
      return { generation, key: createPrivateKey(keyPem), answer };
    }
    return undefined;
  }

  async #currentGeneration(): Promise<number | undefined> {
    const target = await this.#fs.readLink(`${this.#pki}/current`);
    if (target === undefined) return undefined;
    const number = /^generations\/([1-9]\d{0,8})$/.exec(target)?.[1];
    if (number === undefined) throw new Error(`${this.#pki}/current does not point to a generation`);
    return Number(number);
  }

  async #numbers(): Promise<number[]> {
    const names = await this.#fs.list(this.#generations);
    return names
      .filter((name) => /^[1-9]\d{0,8}$/.test(name))
      .map(Number)
      .sort((a, b) => a - b);
  }

  #read(generation: number, name: string): Promise<string | undefined> {
    return this.#fs.readText(`${this.#generations}/${generation}/${name}`);
  }
}
