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

/** What a key is made for, told from others by a file beside it. */
export interface KeyPurpose {
  readonly marker: 'enrollment.sha256' | 'renewal.sha256';
  readonly sha256: string;
}

/** A key to enrol with: the secret that the gateway may bind it to. */
export const enrollmentBy = (secret: string): KeyPurpose => ({
  marker: 'enrollment.sha256',
  sha256: createHash('sha256').update(secret).digest('hex'),
});

/** A key to follow that of this certificate. */
export const renewalOf = (certificate: X509Certificate): KeyPurpose => ({
  marker: 'renewal.sha256',
  sha256: createHash('sha256').update(certificate.raw).digest('hex'),
});

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
 *     pki/generations/<n>/{key.pem,certificate.pem,gateway-ca.pem,enrollment.sha256 or renewal.sha256}
 *     pki/current -> generations/<n>
 *
 * One rename of the link switches key, certificate and bundle together, so that no reader ever sees a mixture. A later generation
 * than the one in force has a key and waits for its certificate; an earlier one is kept until the one in force has leased.
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
    const identity = await this.#load(generation);
    if (identity === undefined) throw new Error(`${this.#pki}/current points to a generation that is not complete`);
    return identity;
  }

  /** The latest whole identity before the one in force: kept until that one has leased. */
  async former(): Promise<Identity | undefined> {
    const current = (await this.#currentGeneration()) ?? 0;
    for (const generation of (await this.generations()).toReversed()) {
      const identity = generation < current ? await this.#load(generation) : undefined;
      if (identity !== undefined) return identity;
    }
    return undefined;
  }

  /** Numbers of every generation on disk, whole or waiting, in their order. */
  async generations(): Promise<number[]> {
    const names = await this.#fs.list(this.#generations);
    return names
      .filter((name) => /^[1-9]\d{0,8}$/.test(name))
      .map(Number)
      .sort((a, b) => a - b);
  }

  /** The enrolment secret; undefined when there is none. */
  async secret(): Promise<string | undefined> {
    return (await this.#fs.readText(`${this.#state}/enrollment-secret`))?.trim();
  }

  /** Puts a secret in place of whatever there is. */
  async stageSecret(secret: string): Promise<void> {
    await this.#fs.makeDir(this.#state);
    await replaceFile(this.#fs, this.#state, 'enrollment-secret', `${secret}\n`);
  }

  /** Removes the secret. */
  async discardSecret(): Promise<void> {
    await this.#fs.remove(`${this.#state}/enrollment-secret`);
    await this.#fs.syncDir(this.#state);
  }

  /**
   * A key on disk for this purpose: the one of an earlier run, because the gateway may already have a certificate for it, or a
   * new one. When this returns, the key survives a power cut.
   */
  async pendingKey(purpose: KeyPurpose): Promise<PendingKey> {
    for (;;) {
      const pending = await this.#findPending(purpose);
      if (pending !== undefined) return pending;
      await this.#stageKey(purpose);
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

  /** Removes a generation that waits for a certificate which its key will not get. */
  async discardPending(generation: number): Promise<void> {
    await this.#fs.remove(`${this.#generations}/${generation}`);
  }

  /** Removes every generation and left-over but the identity in force. Repeating it is harmless. */
  async discardOthers(): Promise<void> {
    const current = await this.#currentGeneration();
    await this.#removeAll(this.#generations, (name) => name !== String(current));
    await this.#removeAll(this.#pki, (name) => name.endsWith('.tmp'));
  }

  /** Removes the generations before this one, and left-overs; a key that waits for its certificate stays. */
  async discardBefore(generation: number): Promise<void> {
    await this.#removeAll(this.#generations, (name) => name.endsWith('.tmp') || Number(name) < generation);
    await this.#removeAll(this.#pki, (name) => name.endsWith('.tmp'));
  }

  async #removeAll(directory: string, isOver: (name: string) => boolean): Promise<void> {
    for (const name of await this.#fs.list(directory)) {
      if (isOver(name)) await this.#fs.remove(`${directory}/${name}`);
    }
  }

  async #load(generation: number): Promise<Identity | undefined> {
    const [keyPem, certificatePem, caPem] = await Promise.all([
      this.#read(generation, 'key.pem'),
      this.#read(generation, 'certificate.pem'),
      this.#read(generation, 'gateway-ca.pem'),
    ]);
    if (keyPem === undefined || certificatePem === undefined || caPem === undefined) return undefined;
    return { generation, keyPem, certificatePem, caPem, certificate: new X509Certificate(certificatePem) };
  }

  /** The directory appears whole or not at all: it is filled and synced under another name first. */
  async #stageKey({ marker, sha256 }: KeyPurpose): Promise<void> {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const staging = `${this.#generations}/.staging-${randomBytes(8).toString('hex')}.tmp`;
    await this.#fs.makeDir(staging);
    await this.#fs.writeSynced(`${staging}/key.pem`, privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
    await this.#fs.writeSynced(`${staging}/${marker}`, `${sha256}\n`);
    await this.#fs.syncDir(staging);
    const next = Math.max(0, ...(await this.generations())) + 1;
    try {
      await this.#fs.rename(staging, `${this.#generations}/${next}`);
    } catch (error) {
      // Another run of the same host was faster; if it is for the same, its key serves both.
      if (!hasCode(error, 'ENOTEMPTY') && !hasCode(error, 'EEXIST')) throw error;
      await this.#fs.remove(staging);
    }
    await this.#fs.syncDir(this.#generations);
    await this.#fs.syncDir(this.#pki);
    await this.#fs.syncDir(this.#state);
  }

  async #findPending(purpose: KeyPurpose): Promise<PendingKey | undefined> {
    const current = (await this.#currentGeneration()) ?? 0;
    // Of an enrolment the one in force too: another run of the same host may have just made it so, with this very secret. Not of
    // a renewal: when that one is refused and the former one renews again, it needs another.
    const first = purpose.marker === 'enrollment.sha256' ? current : current + 1;
    for (const generation of (await this.generations()).filter((number) => number >= first)) {
      const [keyPem, marker, certificatePem, caPem] = await Promise.all([
        this.#read(generation, 'key.pem'),
        this.#read(generation, purpose.marker),
        this.#read(generation, 'certificate.pem'),
        this.#read(generation, 'gateway-ca.pem'),
      ]);
      if (keyPem === undefined || marker?.trim() !== purpose.sha256) continue;
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

  #read(generation: number, name: string): Promise<string | undefined> {
    return this.#fs.readText(`${this.#generations}/${generation}/${name}`);
  }
}
