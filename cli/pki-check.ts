import { lifetimeLevel } from '../src/pki/lifetime.ts';
import type { ProgramRow } from '../src/read/database.ts';
import { type GatewayPki, readGatewayPki } from '../src/read/gateway-pki.ts';
import { isoTime } from './output/format.ts';

/** How bad a finding is, and what it is. */
interface Finding {
  readonly status: 'pass' | 'warn' | 'fail';
  readonly detail: string;
}

/**
 * Judges what live gateways say of their PKI files: files that they cannot use, serving certificates near their end, and different
 * trust, which an agent meets as refusals by one gateway of two. The worst finding decides, all of them are told.
 */
export function checkPki(gateways: readonly ProgramRow[], nowMs: number): Finding {
  const known = gateways.flatMap(({ program, details }) => {
    const pki = readGatewayPki(details);
    return pki === undefined ? [] : [{ program, pki }];
  });
  const findings = [...known.flatMap(({ program, pki }) => findingsOf(program, pki, nowMs)), ...differences(known)];
  if (findings.length === 0) {
    const silent = gateways.length - known.length;
    return silent > 0 || gateways.length === 0
      ? { status: 'warn', detail: 'no live gateway tells which CAs it trusts' }
      : { status: 'pass', detail: `${known.length} serving, with the same trust` };
  }
  const status = findings.some((finding) => finding.status === 'fail') ? 'fail' : 'warn';
  return { status, detail: findings.map(({ detail }) => detail).join('; ') };
}

function findingsOf(program: string, { error, serving }: GatewayPki, nowMs: number): Finding[] {
  const findings: Finding[] = [];
  if (error !== null) {
    const since = isoTime(error.since);
    findings.push({
      status: 'fail',
      detail: `${program} goes on with its last good PKI files since ${since} (${error.code}): ${error.message}`,
    });
  }
  const level = lifetimeLevel({ notBeforeMs: serving.not_before, notAfterMs: serving.not_after }, nowMs);
  if (level !== 'fresh') {
    const end = `${level === 'expired' ? 'expired' : 'ends'} at ${isoTime(serving.not_after)}`;
    findings.push({
      status: level === 'ageing' ? 'warn' : 'fail',
      detail: `the certificate of ${program} ${end}: run \`fleet ca reissue-gateway\``,
    });
  }
  return findings;
}

/** A rotation lets them differ for the 2 s of a reload; beyond that, a gateway has other files. */
function differences(known: readonly { readonly program: string; readonly pki: GatewayPki }[]): Finding[] {
  const trusts = known.map(({ program, pki }) => ({ program, cas: [...pki.trusted_ca_sha256s].sort() }));
  if (new Set(trusts.map(({ cas }) => cas.join())).size <= 1) return [];
  const told = trusts.map(({ program, cas }) => `${program} ${cas.map((sha256) => sha256.slice(0, 12)).join(' ')}`);
  const detail = `gateways trust different CAs: ${told.join(', ')}; run \`fleet ca sync\` where files are older`;
  return [{ status: 'warn', detail }];
}
