import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type FileStep, removeFileDurably, syncFolderOf, writeFileAtomic } from '../pki/atomic-file.ts';
import { attempt } from '../pki/bundle.ts';
import { sha256Hex } from '../pki/certificate.ts';
import { type PkiPaths, previousPath } from '../pki/files.ts';
import { fileSigner, type Signer } from '../pki/signer.ts';

const KEY_MODE = 0o600;
const CERTIFICATE_MODE = 0o644;
/** What `writeFileAtomic` puts behind a file's name while it writes. */
const LEFTOVER_END = /^[0-9a-f]{12}\.tmp$/;

/** A CA of which this host has certificate and key. */
export interface HeldCa {
  readonly sha256: string;
  readonly certPem: string;
  readonly keyPem: string;
}

/**
 * The PKI files of one gateway's host. Beside the CA's own two files a rotation keeps `.next` (made, not in force yet) and `.previous` (until
 * the rotation is complete). Every change is atomic, durable and left out where the file is so already (and a key is nobody else's business),
 * so that whatever is cut off can be run again. `before` is told every step on the disk.
 */
export class HostFiles {
  readonly paths: PkiPaths;
  readonly #before: FileStep;
  readonly #durable = new Set<string>();
  /** What was changed, by file name. */
  readonly changed: string[] = [];

  constructor(paths: PkiPaths, before: FileStep = () => undefined) {
    this.paths = paths;
    this.#before = before;
  }

  /** A file's text; undefined when there is none. Throws for one that cannot be read. */
  async read(path: string): Promise<string | undefined> {
    try {
      return await readFile(path, 'utf8');
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** Fingerprint of the CA in the main file; undefined when there is none that can be read. */
  async mainCa(): Promise<string | undefined> {
    return fingerprint(await this.read(this.paths.caCert));
  }

  /**
   * Every CA of which certificate and key are on this host, wherever: a crash may have left a key beside another CA's certificate, so they
   * are matched by key. `certificates` are those that the log tells; `carried` is a folder with keys from another host.
   */
  async held(certificates: readonly string[], carried?: string): Promise<ReadonlyMap<string, HeldCa>> {
    const { caCert, caKey } = this.paths;
    const places = [caCert, nextPath(caCert), previousPath(caCert)];
    const keyPlaces = [caKey, nextPath(caKey), previousPath(caKey), ...(await filesIn(carried))];
    const certs = [...certificates, ...(await this.#readAll(places))];
    const keys = new Map<string, string>();
    for (const pem of await this.#readAll(keyPlaces)) {
      const spki = attempt(() => publicKeyOf(createPublicKey(createPrivateKey(pem))));
      if (spki !== undefined) keys.set(spki, pem);
    }
    const found = certs.flatMap((certPem) => {
      const certificate = attempt(() => new X509Certificate(certPem));
      const keyPem = certificate === undefined ? undefined : keys.get(publicKeyOf(certificate.publicKey));
      if (certificate === undefined || keyPem === undefined) return [];
      return [{ sha256: sha256Hex(certificate.raw), certPem, keyPem }];
    });
    return new Map(found.map((ca) => [ca.sha256, ca]));
  }

  /** Stages a CA: its key first, so that a certificate never lies there without one. */
  async stage({ certPem, keyPem }: Omit<HeldCa, 'sha256'>): Promise<void> {
    await this.#put(nextPath(this.paths.caKey), keyPem, KEY_MODE);
    await this.#put(nextPath(this.paths.caCert), certPem, CERTIFICATE_MODE);
  }

  /** Keeps a CA that is to go on being trusted. Its certificate first: half an archive is none to a gateway. */
  async archive({ certPem, keyPem }: HeldCa): Promise<void> {
    await this.#put(previousPath(this.paths.caCert), certPem, CERTIFICATE_MODE);
    await this.#put(previousPath(this.paths.caKey), keyPem, KEY_MODE);
  }

  /** Makes a CA the one in the main files. Between its two steps the files do not match, and gateways keep what they have. */
  async install({ certPem, keyPem }: HeldCa): Promise<void> {
    await this.#put(this.paths.caKey, keyPem, KEY_MODE);
    await this.#put(this.paths.caCert, certPem, CERTIFICATE_MODE);
  }

  /** Says whom gateways trust. */
  async trust(certificates: readonly string[]): Promise<void> {
    await this.#put(this.paths.trustBundle, certificates.join(''), CERTIFICATE_MODE);
  }

  /** Puts a gateway's certificate into its file. */
  async serve(certPem: string): Promise<void> {
    await this.#put(this.paths.gatewayCert, certPem, CERTIFICATE_MODE);
  }

  /** Puts a gateway's key into its file. */
  async keepGatewayKey(keyPem: string): Promise<void> {
    await this.#put(this.paths.gatewayKey, keyPem, KEY_MODE);
  }

  /** Removes what was staged; keys first, so that none is left without its certificate. */
  async removeStaged(): Promise<void> {
    await this.#remove(nextPath(this.paths.caKey));
    await this.#remove(nextPath(this.paths.caCert));
  }

  /** Removes the archive. */
  async removeArchive(): Promise<void> {
    await this.#remove(previousPath(this.paths.caKey));
    await this.#remove(previousPath(this.paths.caCert));
  }

  /**
   * Removes the temporary files of writes that were cut off: one of them may hold the key of a CA that is to be gone. Only for whoever holds
   * the lock, so that nobody is writing.
   */
  async removeLeftovers(): Promise<void> {
    const { caCert, caKey, trustBundle, gatewayCert, gatewayKey } = this.paths;
    const written = [caCert, caKey].flatMap((path) => [path, nextPath(path), previousPath(path)]);
    for (const path of [...written, trustBundle, gatewayCert, gatewayKey]) {
      const prefix = `.${basename(path)}.`;
      const names = (await readdir(dirname(path))).filter(
        (name) => name.startsWith(prefix) && LEFTOVER_END.test(name.slice(prefix.length)),
      );
      for (const name of names) await this.#remove(join(dirname(path), name));
    }
  }

  async #put(path: string, text: string, mode: number): Promise<void> {
    if ((await this.read(path)) === text && (await isClosedAs(path, mode))) return this.#keep(path);
    await writeFileAtomic(path, text, mode, this.#before);
    this.changed.push(path);
  }

  async #remove(path: string): Promise<void> {
    if ((await this.read(path)) === undefined) return this.#keep(path);
    await removeFileDurably(path, this.#before);
    this.changed.push(path);
  }

  /** The run that left it so may have died before that was durable; once for a folder is enough, later changes see to themselves. */
  async #keep(path: string): Promise<void> {
    const folder = dirname(path);
    if (this.#durable.has(folder)) return;
    await syncFolderOf(path, this.#before);
    this.#durable.add(folder);
  }

  async #readAll(paths: readonly string[]): Promise<string[]> {
    const texts = await Promise.all(paths.map((path) => this.read(path)));
    return texts.flatMap((text) => text ?? []);
  }
}

/** Whether a file is open to nobody beyond a mode. */
async function isClosedAs(path: string, mode: number): Promise<boolean> {
  return ((await stat(path)).mode & 0o777 & ~mode) === 0;
}

/** Where a rotation stages the file of the CA that is to come. */
const nextPath = (path: string): string => `${path}.next`;

/** Signs in the name of a CA that this host holds. */
export function signerOf({ certPem, keyPem }: HeldCa): Signer {
  return fileSigner(certPem, keyPem);
}

function fingerprint(pem: string | undefined): string | undefined {
  return pem === undefined ? undefined : attempt(() => sha256Hex(new X509Certificate(pem).raw));
}

function publicKeyOf(key: X509Certificate['publicKey']): string {
  return key.export({ format: 'der', type: 'spki' }).toString('base64');
}

async function filesIn(folder: string | undefined): Promise<string[]> {
  if (folder === undefined) return [];
  const entries = await readdir(folder, { withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => join(folder, name));
}
