import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { FaultPlanInput } from './faults.ts';
import { createHetznerStub, type HetznerStub } from './stub.ts';

const USAGE = `usage: npm run stub:hetzner -- [--port 8480] [--faults FILE] [--state FILE] [--action-ms 300]
                                [--boot-command COMMAND [--boot-dir DIR]]
The bearer token is read from HETZNER_STUB_TOKEN; without it any token is let in.`;

const EXIT_USAGE = 2;

interface Settings {
  readonly port: number;
  readonly actionMs: number;
  readonly faults?: string;
  readonly state?: string;
  readonly bootCommand?: string;
  readonly bootDir?: string;
}

function readSettings(argv: readonly string[]): Settings {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      port: { type: 'string', default: '8480' },
      'action-ms': { type: 'string', default: '300' },
      faults: { type: 'string' },
      state: { type: 'string' },
      'boot-command': { type: 'string' },
      'boot-dir': { type: 'string' },
    },
  });
  const { faults, state, 'boot-command': bootCommand, 'boot-dir': bootDir } = values;
  return {
    port: wholeNumber('--port', values.port, 65_535),
    actionMs: wholeNumber('--action-ms', values['action-ms'], 3_600_000),
    ...(faults === undefined ? {} : { faults }),
    ...(state === undefined ? {} : { state }),
    ...(bootCommand === undefined ? {} : { bootCommand }),
    ...(bootDir === undefined ? {} : { bootDir }),
  };
}

function wholeNumber(flag: string, text: string, max: number): number {
  if (!/^\d{1,7}$/.test(text) || Number(text) > max) throw new RangeError(`${flag} is a whole number up to ${max}`);
  return Number(text);
}

function stubFor(settings: Settings): HetznerStub {
  const { faults, state, bootCommand: command, bootDir } = settings;
  const token = process.env['HETZNER_STUB_TOKEN'];
  return createHetznerStub({
    actionMs: settings.actionMs,
    ...(token === undefined || token === '' ? {} : { token }),
    ...(faults === undefined ? {} : { faults: JSON.parse(readFileSync(faults, 'utf8')) as FaultPlanInput }),
    ...(state === undefined ? {} : { stateFile: resolve(state) }),
    ...(command === undefined ? {} : { bootCommand: { command, dir: resolve(bootDir ?? temporaryDirectory()) } }),
  });
}

/** Gone when the stub ends; a directory that is to be kept is named. */
function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'hetzner-stub-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function main(): Promise<void> {
  let settings: Settings;
  let stub: HetznerStub;
  try {
    settings = readSettings(process.argv.slice(2));
    stub = stubFor(settings);
  } catch (error) {
    return refuse(`${messageOf(error)}\n${USAGE}`);
  }
  try {
    const listening = await stub.listen(settings.port);
    process.stdout.write(`Hetzner Cloud API stub on ${listening.url}\n`);
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void listening.close());
  } catch (error) {
    const inUse = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    refuse(inUse ? `port ${settings.port} is in use: choose another with --port` : messageOf(error));
  }
}

function refuse(message: string): void {
  process.stderr.write(`hetzner stub: ${message}\n`);
  process.exitCode = EXIT_USAGE;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

await main();
