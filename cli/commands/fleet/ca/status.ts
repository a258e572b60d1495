import { setTimeout as delay } from 'node:timers/promises';
import { Flags } from '@oclif/core';
import { type CaStatus, readCaStatus } from '../../../../src/read/ca-status.ts';
import { type HostStatus, readHostStatus } from '../../../../src/rotation/host-status.ts';
import { atFlag } from '../../../arguments.ts';
import type { FleetChoice } from '../../../connection.ts';
import { usageFailure } from '../../../failure.ts';
import { OperatorCommand } from '../../../operator-command.ts';
import { caStatusJson, caStatusLines } from '../../../output/ca-status.ts';
import { namedPki } from '../../../pki-paths.ts';
import { untilStopped } from '../../../until-stopped.ts';

const LOOK_MS = 1_000;

interface Seen {
  readonly status: CaStatus;
  readonly host: HostStatus | undefined;
}
type Show = (seen: Seen) => void;

/** `fleet ca status`: who issues, who is trusted, who has moved. */
export default class FleetCaStatus extends OperatorCommand {
  static override summary = 'Show who issues certificates, how far a rotation is, and what each gateway serves.';
  static override description =
    'Nodes that keep a rotation from being completed are named with their reasons, by the very rules of `fleet ca rotate --complete`. With the ' +
    'variables of a gateway, the files of this host are shown beside what the log says.';
  static override examples = [
    '<%= config.bin %> fleet ca status',
    '<%= config.bin %> fleet ca status --watch',
    '<%= config.bin %> fleet ca status --at 2h',
  ];
  static override flags = {
    at: atFlag,
    watch: Flags.boolean({ summary: 'Go on until the rotation has ended, showing what changes.' }),
  };

  async run() {
    const { flags } = await this.parse(FleetCaStatus);
    if (flags.watch && this.jsonEnabled())
      throw usageFailure('--watch shows changes to people, --json is one document');
    if (flags.watch && flags.at !== undefined) throw usageFailure('--watch shows what happens, --at what was');
    const look = async () => {
      const status = await this.view(flags, readCaStatus);
      return { status, host: await this.#host(flags, status) };
    };
    if (flags.watch) {
      const show = process.stdout.isTTY ? drawInPlace() : this.#printChanges();
      await untilStopped((signal) => watch(look, show, signal));
      return undefined;
    }
    const { status, host } = await look();
    this.logLines(caStatusLines(status, host));
    return caStatusJson(status, host);
  }

  /** The files of this host as they are now: nothing where no variables name them, or the past is shown. */
  async #host(flags: FleetChoice & { at?: string | undefined }, { ca, moment }: CaStatus) {
    if (flags.at !== undefined) return undefined;
    const named = await namedPki(flags);
    return named.ok ? readHostStatus(named.paths, ca, moment.nowMs) : undefined;
  }

  /** Ages change all the time; who reads plain lines wants to see nodes and gateways move. */
  #printChanges(): Show {
    let printed = '';
    return ({ status, host }) => {
      const { moment: _, ...told } = status;
      const now = JSON.stringify([told, host?.inStep, host?.problem]);
      if (now !== printed) this.logLines(caStatusLines(status, host));
      printed = now;
    };
  }
}

async function watch(look: () => Promise<Seen>, show: Show, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const seen = await look();
    if (signal.aborted) return;
    show(seen);
    if (seen.status.rotation === undefined) return;
    await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Each drawing begins by going back up over the one before, so that what was printed above stays. */
function drawInPlace(): Show {
  let drawn = 0;
  return ({ status, host }) => {
    const { columns, rows } = process.stdout;
    const fitting = caStatusLines(status, host)
      .slice(0, rows - 1)
      .map((line) => line.slice(0, columns - 1));
    const up = drawn === 0 ? '' : `\u001B[${drawn}A`;
    process.stdout.write(`${up}\u001B[J${fitting.join('\n')}\n`);
    drawn = fitting.length;
  };
}
