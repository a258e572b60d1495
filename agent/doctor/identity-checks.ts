import { createPrivateKey } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { checkCertificate } from '../certificate-check.ts';
import { IdentityStore } from '../identity-store.ts';
import { findOpenFile } from '../private-files.ts';
import { diskFs, hasCode } from '../state-fs.ts';
import { type CheckContext, fail, pass, type Verdict, warn } from './verdict.ts';

const MS_PER_HOUR = 3_600_000;
/** Renewal is due with a third of the life left; with a quarter it has failed for a while. Requirement, Rotation. */
const OVERDUE_LIFE = 1 / 4;

/** The files of the identity are there and nobody else's business. */
export async function stateFilesCheck({ config, identity }: CheckContext): Promise<Verdict> {
  if (identity === undefined) return fail('no identity is staged: run pushleft-agent enroll');
  if ('problem' in identity) return fail(identity.problem);
  const generations = await new IdentityStore(diskFs, config.stateDir).generations();
  const open = await findOpenFile(config.stateDir, generations);
  if (open !== undefined) return fail(`${open} is open to others`);
  return (await exists(`${config.stateDir}/enrollment-secret`))
    ? warn('an enrolment secret is left over: run pushleft-agent enroll to remove it')
    : pass(`generation ${identity.generation} is staged${besides(identity.generation, generations)}`);
}

/** What else is on disk, in words: a renewal is under way, or has not been used yet. */
function besides(current: number, generations: readonly number[]): string {
  const kept = generations.filter((generation) => generation < current);
  const waiting = generations.filter((generation) => generation > current);
  return [
    kept.length === 0 ? '' : `; ${kept.join(', ')} is kept until it has leased`,
    waiting.length === 0 ? '' : `; ${waiting.join(', ')} waits for its certificate`,
  ].join('');
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}

/** The certificate is this node's, for the staged key, by a CA of the staged bundle, and has life left. */
export async function certificateCheck({ config, identity }: CheckContext): Promise<Verdict> {
  if (identity === undefined || 'problem' in identity) return fail('there is no certificate to check');
  const { keyPem, certificatePem, caPem, certificate } = identity;
  const check = checkCertificate(config.nodeId, createPrivateKey(keyPem), certificatePem, caPem);
  if (!check.ok) return fail(`the staged certificate is not good: ${check.problem}`);
  const now = Date.now();
  const from = certificate.validFromDate.getTime();
  const until = certificate.validToDate.getTime();
  if (now < from) return fail(`not valid before ${certificate.validFromDate.toISOString()}: is the clock behind?`);
  if (now >= until) return fail(`expired at ${certificate.validToDate.toISOString()}, or the clock is ahead`);
  // As `fleet certificates list` cuts it, so that an operator sees whether the gateway's list tells of this host.
  const serial = certificate.serialNumber.toLowerCase().slice(0, 12);
  const detail = `serial ${serial}, valid for ${((until - now) / MS_PER_HOUR).toFixed(1)} h more`;
  return (until - now) / (until - from) < OVERDUE_LIFE ? warn(`${detail}; its renewal is overdue`) : pass(detail);
}
