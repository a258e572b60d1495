import { randomUUID } from 'node:crypto';
import { Flags } from '@oclif/core';
import { abortRotationCommand, beginRotationCommand, completeRotationCommand } from '../../../../src/commands/ca.ts';
import { HostFiles } from '../../../../src/rotation/host-files.ts';
import { abort, begin, complete, forecastRotation } from '../../../../src/rotation/phases.ts';
import type { FleetChoice } from '../../../connection.ts';
import { refusalFailure } from '../../../failure.ts';
import { dryRunFlag } from '../../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../../output/outcome.ts';
import { CaCommand, withNodes } from '../../../rotation.ts';

const PHASES = ['begin', 'complete', 'abort'] as const;

const phaseFlag = (summary: string, phase: (typeof PHASES)[number]) =>
  Flags.boolean({ summary, exactlyOne: [...PHASES], exclusive: PHASES.filter((other) => other !== phase) });

/** `fleet ca rotate`: replaces the CA in two phases while the fleet works. */
export default class FleetCaRotate extends CaCommand {
  static override summary = 'Replace the CA of the fleet in two phases, without an outage.';
  static override description =
    'Run it on a gateway’s host with the variables of the gateway and an operator’s DATABASE_URL. --begin makes a new CA, waits until every ' +
    'live gateway trusts it and lets it issue; agents then renew onto it. --complete ends the trust in the old one; it is refused while a node ' +
    'would be locked out, and names it. --abort takes a rotation back until the new CA has issued. A phase that was cut off is finished ' +
    'by running it again. See docs/runbooks/ca-rotation.md.';
  static override examples = [
    '<%= config.bin %> fleet ca rotate --begin',
    '<%= config.bin %> fleet ca rotate --complete --dry-run',
    '<%= config.bin %> fleet ca rotate --complete',
    '<%= config.bin %> fleet ca rotate --abort',
  ];
  static override flags = {
    begin: phaseFlag('Trust a new CA everywhere, then let it issue.', 'begin'),
    complete: phaseFlag('Trust the new CA alone and revoke what is left of the old one.', 'complete'),
    abort: phaseFlag('Go back to the old CA.', 'abort'),
    wait: Flags.integer({ summary: 'Seconds to wait for gateways.', default: 60, min: 0, max: 3_600 }),
    'dry-run': dryRunFlag,
  };

  async run() {
    const { flags } = await this.parse(FleetCaRotate);
    if (flags['dry-run']) return this.#forecast(flags);
    const waitMs = flags.wait * 1_000;
    return this.runPhase(flags, (ports) => {
      if (flags.begin) return begin(ports, waitMs);
      return flags.complete ? complete(ports, waitMs) : abort(ports);
    });
  }

  /** Decided as if now, without being on record. Whether gateways would follow --begin is only known once they have to. */
  async #forecast(flags: FleetChoice & { begin: boolean; complete: boolean; 'dry-run': boolean }) {
    const forecast = await this.#decideAsIfNow(flags);
    if (!forecast.ok) throw withNodes(refusalFailure(forecast.refusal), forecast.refusal.details['nodes']);
    const phase = PHASES.find((name) => name === 'abort' || flags[name]);
    this.log(
      '%s',
      outcomeLine(forecast.value, `--${phase} would go through`, `--${phase} would go on with what was begun`),
    );
    return outcomeJson(forecast.value);
  }

  async #decideAsIfNow(flags: FleetChoice & { begin: boolean; complete: boolean; 'dry-run': boolean }) {
    if (flags.complete) return this.attempt(completeRotationCommand, {}, flags);
    if (!flags.begin) return this.attempt(abortRotationCommand, {}, flags);
    const files = new HostFiles(await this.pkiPaths(flags));
    const ca = await this.view(flags, (view) => view.ca());
    const forecast = await forecastRotation(files, ca, { nowMs: Date.now(), rotationId: randomUUID() });
    return this.attempt(beginRotationCommand, forecast, flags);
  }
}
