import { sha256Hex } from './certificate.ts';
import { type FileProblem, readPkiFile } from './read-file.ts';

/** Where a gateway's PKI files are, with the setting that names each. */
export interface PkiPaths {
  /** PUSHLEFT_GATEWAY_CERT */
  readonly gatewayCert: string;
  /** PUSHLEFT_GATEWAY_KEY */
  readonly gatewayKey: string;
  /** PUSHLEFT_AGENT_CLIENT_CA: every CA whose agents are listened to. */
  readonly trustBundle: string;
  /** PUSHLEFT_AGENT_CA_CERT: the CA that issues. */
  readonly caCert: string;
  /** PUSHLEFT_AGENT_CA_KEY */
  readonly caKey: string;
}

/** The files' contents under their names in `PkiPaths`. */
export type Contents = Record<keyof PkiPaths, string>;

/** Certificate and key of the CA before, which a rotation keeps beside the CA's own files. */
export type Archive = Pick<Contents, 'caCert' | 'caKey'>;

/** The files as they lie on the disk, not looked into yet. */
export interface PkiFiles {
  readonly paths: PkiPaths;
  /** The same for the same contents, or for the same reason why there are none. */
  readonly digest: string;
  readonly read: { readonly contents: Contents; readonly archive: Archive | undefined } | FileProblem;
}

const KEY_FILES: ReadonlySet<keyof PkiPaths> = new Set(['gatewayKey', 'caKey']);

/** Where a rotation keeps the file of the CA before. */
export const previousPath = (path: string): string => `${path}.previous`;

/** Reads all five files, and the archive of the previous CA where it is whole. Never throws. */
export async function readPkiFiles(paths: PkiPaths): Promise<PkiFiles> {
  const contents = await readAll(paths);
  if ('code' in contents) return { paths, digest: sha256Hex(contents.message), read: contents };
  const archive = await readArchive(paths);
  return { paths, digest: sha256Hex(JSON.stringify([contents, archive])), read: { contents, archive } };
}

async function readAll(paths: PkiPaths): Promise<Contents | FileProblem> {
  const contents: Contents = { gatewayCert: '', gatewayKey: '', trustBundle: '', caCert: '', caKey: '' };
  for (const name of ['gatewayCert', 'gatewayKey', 'trustBundle', 'caCert', 'caKey'] as const) {
    const reading = await readPkiFile(paths[name], { secret: KEY_FILES.has(name) });
    if (!reading.ok) return reading.problem;
    contents[name] = reading.text;
  }
  return contents;
}

/** Half an archive is none: a rotation writes its two files one after the other. */
async function readArchive(paths: PkiPaths): Promise<Archive | undefined> {
  const caCert = await readPkiFile(previousPath(paths.caCert), { secret: false });
  const caKey = await readPkiFile(previousPath(paths.caKey), { secret: true });
  return caCert.ok && caKey.ok ? { caCert: caCert.text, caKey: caKey.text } : undefined;
}
