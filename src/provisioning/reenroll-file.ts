import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import type { NodeState } from '../domain/node/state.ts';
import { writeFileAtomic } from '../pki/atomic-file.ts';
import { ReenrollBundle } from '../protocol/reenroll-bundle.ts';
import type { CaBundle } from './ca-bundle.ts';
import type { EnrollmentSettings } from './config.ts';
import type { EnrollmentSecret } from './enrollment-secret.ts';

/** Where the bundle of a node lies in a folder. */
export function reenrollPath(folder: string, { name }: Pick<NodeState, 'name'>): string {
  return join(folder, `${name}.reenroll.json`);
}

/** Whether the file may be written: there is none, or an earlier bundle of the same node. Anything else is not ours to overwrite. */
export async function mayReplace(path: string, nodeId: string): Promise<boolean> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT';
  }
  try {
    return v.is(v.object({ ...ReenrollBundle.entries, node_id: v.literal(nodeId) }), JSON.parse(text));
  } catch {
    return false;
  }
}

/** Writes a bundle, readable by its owner alone: the only place where the secret is ever written. Throws what the file system says. */
export async function writeReenrollFile(
  path: string,
  bundle: {
    readonly nodeId: string;
    readonly secret: EnrollmentSecret;
    readonly caBundle: CaBundle;
    readonly settings: Pick<EnrollmentSettings, 'enrollUrl' | 'gatewayUrl'>;
    readonly expiresAt: number;
  },
): Promise<void> {
  const { nodeId, secret, caBundle, settings, expiresAt } = bundle;
  const content: ReenrollBundle = {
    version: 1,
    node_id: nodeId,
    enrollment_secret: secret.hex,
    ca_pem: caBundle.pem,
    enroll_url: settings.enrollUrl,
    gateway_url: settings.gatewayUrl,
    expires_at: new Date(expiresAt).toISOString(),
  };
  await writeFileAtomic(path, `${JSON.stringify(v.parse(ReenrollBundle, content), null, 2)}\n`, 0o600);
}
