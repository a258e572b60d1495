import { Flags } from '@oclif/core';
import { abortRotationCommand, completeRotationCommand } from '../../../../src/commands/ca.ts';
import { abort, begin, complete } from '../../../../src/rotation/phases.ts';
import { refusalFailure } from '../../../failure.ts';
import { dryRunFlag } from '../../../operator-command.ts';
import { outcomeLine } from '../../../output/outcome.ts';
import { CaCommand } from '../../../rotation.ts';

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

  /** What --begin would do depends on gateways that are still to follow; the others are decided as if now, without being on record. */
  async #forecast(flags: { begin: boolean; complete: boolean; 'dry-run': boolean }) {
    if (flags.begin) {
      const text = 'would make a CA, have every live gateway trust it, and let it issue; see `fleet ca status`';
      this.log('%s', text);
      return { dry_run: true, would: text };
    }
    const definition = flags.complete ? completeRotationCommand : abortRotationCommand;
    const forecast = flags.complete
      ? await this.attempt(completeRotationCommand, {}, flags)
      : await this.attempt(abortRotationCommand, {}, flags);
    if (!forecast.ok) {
      const nodes = forecast.refusal.details['nodes'];
      if (Array.isArray(nodes)) this.logLines(nodes.map((node) => `blocked by ${node}`));
      throw refusalFailure(forecast.refusal);
    }
    this.log('%s', outcomeLine(forecast.value, `${definition.name} would go through`, 'nothing to do'));
    return { dry_run: true, events: forecast.value.events };
  }
}
