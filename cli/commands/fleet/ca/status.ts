import { setTimeout as delay } from 'node:timers/promises';
import { Flags } from '@oclif/core';
import { type CaStatus, readCaStatus } from '../../../../src/read/ca-status.ts';
import { atFlag } from '../../../arguments.ts';
import { usageFailure } from '../../../failure.ts';
import { OperatorCommand } from '../../../operator-command.ts';
import { caStatusJson, caStatusLines } from '../../../output/ca-status.ts';
import { untilStopped } from '../../../until-stopped.ts';

const LOOK_MS = 1_000;

/** `fleet ca status`: who issues, who is trusted, who has moved. */
export default class FleetCaStatus extends OperatorCommand {
  static override summary = 'Show who issues certificates, how far a rotation is, and what each gateway serves.';
  static override description =
    'Nodes that keep a rotation from being completed are named with their reasons, by the very rules of `fleet ca rotate --complete`.';
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
    const look = () => this.view(flags, readCaStatus);
    if (flags.watch) {
      const show = process.stdout.isTTY ? drawInPlace() : this.#printChanges();
      await untilStopped((signal) => watch(look, show, signal));
      return undefined;
    }
    const status = await look();
    this.logLines(caStatusLines(status));
    return caStatusJson(status);
  }

  /** Ages change all the time; who reads plain lines wants to see nodes and gateways move. */
  #printChanges(): (status: CaStatus) => void {
    let printed = '';
    return (status) => {
      const { moment: _, ...told } = status;
      const now = JSON.stringify(told);
      if (now !== printed) this.logLines(caStatusLines(status));
      printed = now;
    };
  }
}

async function watch(
  look: () => Promise<CaStatus>,
  show: (status: CaStatus) => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const status = await look();
    if (signal.aborted) return;
    show(status);
    if (status.rotation === undefined) return;
    await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Each drawing begins by going back up over the one before, so that what was printed above stays. */
function drawInPlace(): (status: CaStatus) => void {
  let drawn = 0;
  return (status) => {
    const { columns, rows } = process.stdout;
    const fitting = caStatusLines(status)
      .slice(0, rows - 1)
      .map((line) => line.slice(0, columns - 1));
    const up = drawn === 0 ? '' : `\u001B[${drawn}A`;
    process.stdout.write(`${up}\u001B[J${fitting.join('\n')}\n`);
    drawn = fitting.length;
  };
}
