import { constants } from 'node:os';
import { Flags } from '@oclif/core';
import { Transactor } from '../../src/transactor/transactor.ts';
import { FleetRunsError, LocalFleet, type RunningFleet } from '../../src/up/fleet.ts';
import { examineNodes } from '../../src/up/jobs.ts';
import { ensureNodes } from '../../src/up/nodes.ts';
import { reportOf, type UpReport } from '../../src/up/report.ts';
import { settingProblem } from '../../src/up/settings.ts';
import { chooseStateDirectory, prepareStateDirectory, stateDirectoryProblem } from '../../src/up/state-directory.ts';
import { listenForStopSignals } from '../../src/up/stop-signals.ts';
import { operatorActor } from '../connection.ts';
import { EXIT } from '../exit-code.ts';
import { Failure, usageFailure } from '../failure.ts';
import { OperatorCommand } from '../operator-command.ts';
import { readyLines } from '../up/ready.ts';
import { showFleet } from '../up/show-fleet.ts';

const MAX_NODES = 20;
const RESTART_MAX_SECONDS = 3_600;

/** A signal ended the command before it was done. */
class Interrupted extends Error {
  override readonly name = 'Interrupted';
  readonly exitCode: number;
  constructor(signal: NodeJS.Signals) {
    super(`stopped by ${signal}`);
    this.exitCode = 128 + constants.signals[signal];
  }
}

/** `up`: a whole fleet on this machine. */
export default class Up extends OperatorCommand {
  static override summary =
    'Run a whole fleet on this machine: PostgreSQL, gateway, scheduler, a stub of the Hetzner API, agents.';
  static override description =
    'Keeps its state in ./.pushleft unless told otherwise, and goes on with it the next time. Ctrl-C stops everything, a second one at ' +
    'once. Settings in the environment (docs/configuration.md) are handed on to what it starts.';
  static override examples = [
    '<%= config.bin %> up',
    '<%= config.bin %> up --exit-when-ready --state-dir /tmp/fleet',
    {
      description: 'An outage drill: kill the gateway, or PostgreSQL, and look at what happens.',
      command: 'PUSHLEFT_LEASE_SECONDS=5 <%= config.bin %> up --restart-after 60',
    },
  ];
  static override enableJsonFlag = false;
  static override flags = {
    nodes: Flags.integer({ summary: 'How many nodes; every third is for builds.', default: 3, min: 0, max: MAX_NODES }),
    provision: Flags.boolean({ summary: 'Provision nodes.', default: true, allowNo: true }),
    jobs: Flags.boolean({ summary: 'Have each node examine its host.', default: true, allowNo: true }),
    'exit-when-ready': Flags.boolean({ summary: 'Stop when all of that is done; the last line is one JSON object.' }),
    'any-ports': Flags.boolean({ summary: 'On the first start take any free ports, not 8443, 8444, 8445 and 8480.' }),
    'restart-after': Flags.integer({
      summary: 'Start a part that died again after this time, and again until it runs.',
      helpValue: 'SECONDS',
      min: 0,
      max: RESTART_MAX_SECONDS,
    }),
    // Instead of the one that every command has, which would be ignored here: refused.
    'database-url': Flags.string({ hidden: true }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Up);
    if (flags['database-url'] !== undefined) {
      throw usageFailure('--database-url is not for up, which runs a database of its own', 'see --help');
    }
    const misset = settingProblem(process.env);
    if (misset !== undefined) throw usageFailure(misset);
    operatorActor(process.env);
    const stateDir = await stateDirectory(flags['state-dir']);
    const say = (line: string) => this.log('%s', line);
    const restartAfter = flags['restart-after'];
    const fleet = new LocalFleet({
      stateDir,
      env: process.env,
      programVersion: this.config.version,
      anyPorts: flags['any-ports'],
      say,
      onTrouble: (line) => process.stderr.write(`${this.config.bin}: ${line}\n`),
      restartAfterMs: restartAfter === undefined ? undefined : restartAfter * 1_000,
    });
    const stopping = this.stopOnSignals(fleet, say);
    try {
      const report = await this.live(fleet, stopping, stateDir, flags);
      if (flags['exit-when-ready']) say(JSON.stringify(report));
    } catch (error) {
      if (!(error instanceof Interrupted)) throw asFailure(error, stateDir);
      process.exitCode = error.exitCode;
    }
  }

  /** From the start to the stop, whatever comes in between. */
  private async live(
    fleet: LocalFleet,
    stopping: AbortSignal,
    stateDir: string,
    flags: PopulateFlags & { 'exit-when-ready': boolean },
  ): Promise<UpReport> {
    const startedAt = performance.now();
    const running = await fleet.start(stopping);
    try {
      const completed = await this.populate(running, AbortSignal.any([stopping, fleet.broken]), flags);
      const report = await reportOf(running.pool, completed, startedAt);
      await fleet.markReady();
      this.logLines(readyLines(running, stateDir, report));
      if (!flags['exit-when-ready']) await showFleet(running, stopping);
      return report;
    } finally {
      this.log('stopping everything');
      await fleet.stop();
    }
  }

  /** Provisions, admits and examines nodes, as the flags say. Answers how many jobs were completed. */
  private async populate(fleet: RunningFleet, signal: AbortSignal, flags: PopulateFlags): Promise<number> {
    await using opened = new AsyncDisposableStack();
    const url = fleet.environments.operator['DATABASE_URL'] ?? '';
    const transactor = opened.adopt(
      new Transactor({ url, program: this.programName(), programVersion: this.config.version }),
      (transactor) => transactor.close(),
    );
    const say = (line: string) => this.log('%s', line);
    const maker = { fleet, transactor, actor: operatorActor(process.env), signal, say };
    const nodes = flags.provision ? await ensureNodes(maker, flags.nodes) : [];
    return flags.jobs ? await examineNodes(maker, nodes) : 0;
  }

  private stopOnSignals(fleet: LocalFleet, say: (line: string) => void): AbortSignal {
    const stopping = new AbortController();
    const signals = listenForStopSignals((signal) => {
      fleet.kill();
      process.exit(new Interrupted(signal).exitCode);
    });
    this.onEnd(async () => signals.release());
    const stop = async () => {
      const signal = await signals.first;
      say(`${signal}: once more ends everything at once`);
      stopping.abort(new Interrupted(signal));
    };
    void stop();
    // Whoever read our output has gone (`| head`): as when a terminal is closed.
    process.stdout.on('error', () => stopping.abort(new Interrupted('SIGPIPE')));
    return stopping.signal;
  }
}

type PopulateFlags = { readonly nodes: number; readonly provision: boolean; readonly jobs: boolean };

async function stateDirectory(flag: string | undefined): Promise<string> {
  const chosen = chooseStateDirectory({ flag, env: process.env, cwd: process.cwd() });
  const unusable = stateDirectoryProblem(chosen);
  if (unusable !== undefined) throw usageFailure(unusable, 'choose another --state-dir');
  try {
    return await prepareStateDirectory(chosen);
  } catch (error) {
    throw asFailure(error, chosen);
  }
}

function asFailure(error: unknown, stateDir: string): Failure {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof FleetRunsError) {
    const remedy = 'stop it with Ctrl-C in its terminal or by `kill` and its number, or choose another --state-dir';
    return new Failure(EXIT.refused, 'fleet_runs', message, { remedy });
  }
  return new Failure(EXIT.unavailable, 'fleet_failed', message.replaceAll(/\s+/g, ' '), {
    remedy: `its logs are in ${stateDir}/logs`,
    cause: error,
  });
}
