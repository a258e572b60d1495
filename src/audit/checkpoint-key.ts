import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { readPkiFile } from '../pki/read-file.ts';

/** A key, or one line that says why the file holds none. */
export type KeyReading =
  | { readonly ok: true; readonly key: KeyObject }
  | { readonly ok: false; readonly message: string };

/**
 * The operator's Ed25519 key that signs checkpoints: PEM (PKCS#8) without a passphrase, as `openssl genpkey -algorithm ed25519` writes
 * it, which nobody but its owner may read or write. Never throws.
 */
export function readSigningKey(path: string): Promise<KeyReading> {
  return readKey(path, { secret: true });
}

/** The public half of it, as `openssl pkey -pubout` writes it. Never throws. */
export function readPublicKey(path: string): Promise<KeyReading> {
  return readKey(path, { secret: false });
}

async function readKey(path: string, { secret }: { secret: boolean }): Promise<KeyReading> {
  const reading = await readPkiFile(path, { secret });
  if (!reading.ok) return { ok: false, message: reading.problem.message };
  const key = parse(reading.text, secret);
  if (key?.asymmetricKeyType === 'ed25519') return { ok: true, key };
  const wanted = secret ? 'private key without a passphrase' : 'public key';
  return { ok: false, message: `${path}: not an Ed25519 ${wanted} in PEM` };
}

/** A private key is no public one: who verifies should not have to hold it. */
function parse(pem: string, secret: boolean): KeyObject | undefined {
  if (!secret && !pem.includes('-----BEGIN PUBLIC KEY-----')) return undefined;
  try {
    return secret ? createPrivateKey(pem) : createPublicKey(pem);
  } catch {
    return undefined;
  }
}
