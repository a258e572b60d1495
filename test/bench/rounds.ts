/** Two ways of doing the same; each answers with what it did a second. */
export interface Contest {
  readonly baseline: () => Promise<number>;
  readonly candidate: () => Promise<number>;
}

/** Medians over the rounds. `ratio` is the median of the rounds' ratios, candidate over baseline. */
export interface Comparison {
  readonly baseline: number;
  readonly candidate: number;
  readonly ratio: number;
}

/**
 * Warms both up, then lets them take turns, so that a machine which grows slower or busier meanwhile hits both alike: a ratio compares
 * only neighbours in time. Every other round goes the other way about.
 */
export async function compare(contest: Contest, rounds: number): Promise<Comparison> {
  await contest.baseline();
  await contest.candidate();
  const measured: { baseline: number; candidate: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    if (round % 2 === 0) {
      const baseline = await contest.baseline();
      measured.push({ baseline, candidate: await contest.candidate() });
    } else {
      const candidate = await contest.candidate();
      measured.push({ baseline: await contest.baseline(), candidate });
    }
  }
  return {
    baseline: median(measured.map((m) => m.baseline)),
    candidate: median(measured.map((m) => m.candidate)),
    ratio: median(measured.map((m) => m.candidate / m.baseline)),
  };
}

/** Runs `work` again and again in `callers` loops until `durationMs` have passed; how often it was done a second. */
export async function ratePerSecond(
  callers: number,
  durationMs: number,
  work: () => Promise<unknown>,
): Promise<number> {
  const started = performance.now();
  let done = 0;
  const caller = async () => {
    while (performance.now() - started < durationMs) {
      await work();
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return (done * 1_000) / (performance.now() - started);
}

/** The middle value; of an even number the lower of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted[Math.floor((sorted.length - 1) / 2)];
  if (middle === undefined) throw new Error('there is no median of nothing');
  return middle;
}
