import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { promisify } from 'node:util';
import type { Benchmark } from './benchmark.ts';
import { issuancesPerSecond } from './issuance.ts';
import { compare, ratePerSecond } from './rounds.ts';

const CONCURRENCY = 8;

/** Certificates a second from CSR to PEM, against signing as many bytes and nothing else. */
export const issuanceBenchmark: Benchmark = {
  name: 'issuance',
  what: 'certificates/s from CSR to PEM, against bare ECDSA P-256 signatures',
  async run({ quick }) {
    const durationMs = quick ? 500 : 2_000;
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const toBeSigned = randomBytes(500);
    const signOnce = promisify(sign) as (algorithm: string, data: Buffer, key: typeof privateKey) => Promise<Buffer>;
    const { baseline, candidate, ratio } = await compare(
      {
        baseline: () => ratePerSecond(CONCURRENCY, durationMs, () => signOnce('sha256', toBeSigned, privateKey)),
        candidate: () => issuancesPerSecond({ durationMs, concurrency: CONCURRENCY }),
      },
      quick ? 3 : 7,
    );
    return { ratio, figures: { certificates_per_s: candidate, signatures_per_s: baseline } };
  },
};
