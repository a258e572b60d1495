import { setTimeout as delay } from 'node:timers/promises';
import { Flags } from '@oclif/core';
import { readCaStatus } from '../../../../src/read/ca-status.ts';
import { usageFailure } from '../../../failure.ts';
import { OperatorCommand } from '../../../operator-command.ts';
import { caStatusJson, caStatusLines } from '../../../output/ca-status.ts';

const LOOK_MS = 1_000;

/** `fleet ca status`: who issues, who is trusted, who has moved. */
export default class FleetCaStatus extends OperatorCommand {
  static override summary = 'Show who issues certificates, how far a rotation is, and what each gateway serves.';
  static override description =
    'Nodes that keep a rotation from being completed are named with their reasons, by the very rules of `fleet ca rotate --complete`.';
  static override examples = ['<%= config.bin %> fleet ca status', '<%= config.bin %> fleet ca status --watch'];
  static override flags = {
    watch: Flags.boolean({ summary: 'Go on until the rotation has ended, showing what changes.' }),
  };

  async run() {
    const { flags } = await this.parse(FleetCaStatus);
    if (flags.watch && this.jsonEnabled())
      throw usageFailure('--watch shows changes to people, --json is one document');
    const pool = await this.pool(flags);
    let shown = '';
    for (;;) {
      const status = await readCaStatus(pool);
      const lines = caStatusLines(status);
      // What is left of a lifetime changes all the time; whoever watches wants to see nodes and gateways move.
      const now = JSON.stringify([status.ca, status.moved, status.nodes, status.blockers, status.gateways]);
      if (now !== shown) this.#show(lines, flags.watch);
      shown = now;
      if (!flags.watch || (status.ca?.rotation_id ?? null) === null) return caStatusJson(status);
      await delay(LOOK_MS);
    }
  }

  /** In place on a terminal that is watched, one after the other elsewhere. */
  #show(lines: readonly string[], watching: boolean): void {
    if (watching && process.stdout.isTTY) process.stdout.write('\x1b[H\x1b[2J');
    this.logLines(lines);
  }
}
