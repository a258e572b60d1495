import { isConnectionError } from '../../../src/database/connect.ts';
import { type Health, readHealth } from '../../../src/read/health.ts';
import { EXIT } from '../../exit-code.ts';
import { type Check, checkHealth, checkUnreachable } from '../../health-checks.ts';
import { OperatorCommand } from '../../operator-command.ts';
import { isoTime } from '../../output/format.ts';
import { tableLines } from '../../output/table.ts';

/** `fleet doctor`: is the control plane well? */
export default class FleetDoctor extends OperatorCommand {
  static override summary = 'Check the control plane: database, log and lock, gateways, scheduler leader, clocks.';
  static override description = 'Exits 3 when a check fails; warnings alone exit 0.';
  static override examples = ['<%= config.bin %> fleet doctor', '<%= config.bin %> fleet doctor --json'];

  async run() {
    const { flags } = await this.parse(FleetDoctor);
    const pool = await this.pool(flags);
    try {
      const health = await readHealth(pool);
      const checks = checkHealth(health, Date.now() + health.clockAheadOfHostMs);
      this.printChecks(checks);
      return document(health, checks);
    } catch (error) {
      const failure = isConnectionError(error) ? await this.explain(error) : undefined;
      if (failure === undefined) throw error;
      const checks = [checkUnreachable(failure)];
      this.printChecks(checks);
      return { checks, database: null, log: null, lock: null, programs: null, clocks: null };
    }
  }

  /** The table; its worst finding decides the exit code. */
  private printChecks(checks: readonly Check[]): void {
    this.logLines(
      tableLines<Check>(checks, [
        { heading: 'CHECK', value: ({ check }) => check },
        { heading: 'STATUS', value: ({ status }) => status },
        { heading: 'DETAIL', value: ({ detail }) => detail },
      ]),
    );
    if (checks.some(({ status }) => status === 'fail')) process.exitCode = EXIT.unavailable;
  }
}

function document(health: Health, checks: readonly Check[]) {
  return {
    checks,
    database: { version: health.databaseVersion, user: health.databaseUser, round_trip_ms: health.roundTripMs },
    log: {
      position: health.head.position,
      at: isoTime(health.head.position === 0 ? null : health.head.at),
      projected_position: health.projectedPosition,
      definition_matches: health.definitionMatches,
    },
    lock: health.lock.map(({ program, granted, transactionMs }) => ({
      program,
      granted,
      transaction_ms: transactionMs,
    })),
    programs: health.programs.map(({ program, kind, details, started_at, beacon_at }) => ({
      program,
      kind,
      started_at: isoTime(started_at),
      beacon_at: isoTime(beacon_at),
      details,
    })),
    clocks: {
      database_ahead_of_host_ms: health.clockAheadOfHostMs,
      database_ahead_of_log_ms: health.clockAheadOfLogMs,
    },
  };
}
