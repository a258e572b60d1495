import type { Benchmark } from './benchmark.ts';
import { startChild } from './child.ts';
import { writeLongLog } from './long-log.ts';
import { median } from './rounds.ts';

interface Ran {
  readonly seconds: number;
  readonly peakMb: number;
}

/** Events a second of `projections rebuild` on a long log, each run in a fresh process, and the most memory it took. */
export const rebuildBenchmark: Benchmark = {
  name: 'rebuild',
  what: 'events/s of a rebuild, against reading and parsing the log alone',
  async run({ postgres, quick }) {
    const events = quick ? 50_000 : 1_000_000;
    const url = await postgres.createDatabase('rebuild');
    await writeLongLog(url, events);
    const once = async (what: 'rebuild' | 'read') => {
      await using child = await startChild('rebuild-child.ts', { DATABASE_URL: url });
      return (await child.ask(what)) as Ran;
    };
    const rounds: { read: Ran; rebuilt: Ran }[] = [];
    for (let round = 0; round < (quick ? 1 : 3); round += 1) {
      rounds.push({ read: await once('read'), rebuilt: await once('rebuild') });
    }
    return {
      ratio: median(rounds.map(({ read, rebuilt }) => read.seconds / rebuilt.seconds)),
      figures: {
        events,
        events_per_s: events / median(rounds.map(({ rebuilt }) => rebuilt.seconds)),
        read_events_per_s: events / median(rounds.map(({ read }) => read.seconds)),
        peak_memory_mb: Math.max(...rounds.map(({ rebuilt }) => rebuilt.peakMb)),
      },
    };
  },
};
