import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import * as v from 'valibot';
import { ReenrollBundle } from '../src/protocol/reenroll-bundle.ts';
import { readBundle } from './certificate-check.ts';
import { type EnrollDependencies, type EnrollOutcome, enroll } from './enroll.ts';
import { describeError } from './log.ts';
import { hasCode, type StateFs } from './state-fs.ts';

/** Larger than any bundle: two certificates of a few hundred bytes, and a few lines. */
const BUNDLE_MAX_BYTES = 128 * 1024;

/** A bundle to enrol with, or why it must not be used. The secret is in no message. */
export type BundleReading =
  | { readonly kind: 'bundle'; readonly bundle: ReenrollBundle }
  | { readonly kind: 'unreadable'; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string };

/** Reads what `fleet reenroll` wrote. Refuses a file that others may read, whose secret is then not this node's alone, and another node's. */
export async function readBundleFile(path: string, nodeId: string): Promise<BundleReading> {
  let text: string;
  try {
    await using file = await open(path, 'r');
    const { mode, size } = await file.stat();
    if ((mode & 0o077) !== 0) {
      return { kind: 'refused', reason: `${path} (mode ${(mode & 0o777).toString(8)}) is open to others` };
    }
    if (size > BUNDLE_MAX_BYTES) return { kind: 'unreadable', reason: `${path} is no bundle: it is too large` };
    text = await file.readFile('utf8');
  } catch (error) {
    return { kind: 'unreadable', reason: describeError(error) };
  }
  const bundle = parse(text);
  if (bundle === undefined) return { kind: 'unreadable', reason: `${path} is not what fleet reenroll writes` };
  if (bundle.node_id === nodeId) return { kind: 'bundle', bundle };
  return { kind: 'refused', reason: `${path} is for another node than PUSHLEFT_NODE_ID` };
}

function parse(text: string): ReenrollBundle | undefined {
  try {
    const bundle = v.parse(ReenrollBundle, JSON.parse(text));
    return readBundle(bundle.ca_pem).length > 0 ? bundle : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Enrols anew with a bundle, in place of whatever is staged, and removes its file at the end. May be cut anywhere and run again:
 * the bundle goes last, and the same secret keeps the same key.
 */
export async function enrollByBundle(
  path: string,
  bundle: ReenrollBundle,
  fs: StateFs,
  deps: Omit<EnrollDependencies, 'replace'>,
): Promise<EnrollOutcome> {
  await deps.store.stageSecret(bundle.enrollment_secret);
  const outcome = await enroll({ ...deps, replace: true });
  if (outcome.kind === 'enrolled') await removeBundle(path, fs, deps);
  return outcome;
}

/** The secret in it is used up, so a file that may not be removed is no failure. */
async function removeBundle(path: string, fs: StateFs, { log }: Pick<EnrollDependencies, 'log'>): Promise<void> {
  try {
    await fs.remove(path);
    await fs.syncDir(dirname(path));
  } catch (error) {
    if (!['EACCES', 'EPERM', 'EROFS'].some((code) => hasCode(error, code))) throw error;
    log.warn({ reason: describeError(error) }, 'the bundle is used up and could not be removed');
  }
}
