import { randomBytes } from 'node:crypto';
import { agentTbs, assembleCertificate, newSerial, nominalWindow, sha256Hex } from '../../src/pki/certificate.ts';
import { readCsr } from '../../src/pki/csr.ts';
import { csrDer, csrPem, NODE, newCa } from '../pki/support.ts';

/** How long to measure, and how many issuances are under way at once. */
export interface IssuanceBenchmarkOptions {
  readonly durationMs: number;
  readonly concurrency: number;
}

/**
 * Certificates a second from CSR to PEM, as the enrolment route makes them, without database and network: read and
 * verify the request, build and digest the to-be-signed part, sign on the thread pool, assemble.
 */
export async function issuancesPerSecond({ durationMs, concurrency }: IssuanceBenchmarkOptions): Promise<number> {
  const { signer } = await newCa();
  const requests = Array.from({ length: 64 }, () => csrPem(csrDer()));
  const started = performance.now();
  let issued = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() - started < durationMs) {
      const csr = readCsr(requests[issued % requests.length] ?? '', NODE);
      if (!csr.ok) throw new Error(csr.code);
      const window = nominalWindow(Date.now(), 86_400);
      const tbs = agentTbs({
        nodeId: NODE,
        spkiDer: csr.spkiDer,
        serialHex: newSerial(randomBytes),
        issuer: signer.issuer,
        ...window,
      });
      sha256Hex(tbs);
      assembleCertificate(tbs, await signer.sign(tbs));
      issued += 1;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return (issued * 1000) / (performance.now() - started);
}
