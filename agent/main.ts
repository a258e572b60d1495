import { readFileSync } from 'node:fs';
import { parseArgs, parseEnv } from 'node:util';
import { doctorCommand } from './commands/doctor.ts';
import { enrollCommand } from './commands/enroll.ts';
import { renewCertificateCommand } from './commands/renew-certificate.ts';
import { runCommand } from './commands/run.ts';
import { type AgentConfig, type Environment, readConfig } from './config.ts';
import { EXIT, type ExitCode, UsageError } from './exit-code.ts';
import { createLog, describeError } from './log.ts';
import { AGENT_VERSION } from './version.ts';

const HELP = `pushleft-agent ${AGENT_VERSION}

Usage: pushleft-agent COMMAND [OPTIONS]

Commands:
  enroll               Make this host its node: key, certificate and trust bundle, once. Repeating it is harmless.
  run                  Lease jobs and do them until stopped; renew the certificate when it is due.
  renew-certificate    Try to renew the certificate once, now. A running agent takes it up by itself.
  doctor               Check this host and its way to the gateway.

Options:
  --environment-file FILE   Read variables from FILE; the environment itself overrides them.
  --wait SECONDS            enroll: how long to go on asking a gateway that does not answer (600).
  --replace                 enroll: enrol anew although an identity is staged.
  --bundle FILE             enroll: enrol anew with what \`fleet reenroll\` wrote (mode 0600); FILE is removed when it is done.
  --json                    doctor: one JSON document instead of a table.
  --version, --help

Variables: PUSHLEFT_NODE_ID, PUSHLEFT_AGENT_CA, PUSHLEFT_GATEWAY_URL, PUSHLEFT_ENROLL_URL, PUSHLEFT_AGENT_STATE_DIR,
PUSHLEFT_RUNTIME (docker or process), PUSHLEFT_DOCKER_SOCKET, PUSHLEFT_AGENT_ADVERTISE_ADDRESS, PUSHLEFT_INGRESS (none,
embedded or caddy), PUSHLEFT_INGRESS_BIND, PUSHLEFT_CADDY_ADMIN, PUSHLEFT_AGENT_LEASE_WAIT_SECONDS,
PUSHLEFT_AGENT_STOP_GRACE_SECONDS, PUSHLEFT_AGENT_RENEW_CHECK_SECONDS.

Exit codes: 0 done, 1 refused, 2 usage or configuration, 3 the other side failed.
`;

const OPTIONS = {
  // Not --env-file: Node takes that one for its own, even after the script's name, and exits 9 when the file is missing.
  'environment-file': { type: 'string' },
  wait: { type: 'string', default: '600' },
  replace: { type: 'boolean', default: false },
  bundle: { type: 'string' },
  json: { type: 'boolean', default: false },
  version: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** Runs one command line and answers the process's exit code. Standard error has at most one line for a person. */
export async function main(args: readonly string[], env: Environment): Promise<ExitCode> {
  try {
    return await dispatch(args, env);
  } catch (error) {
    const usage = error instanceof UsageError;
    process.stderr.write(`pushleft-agent: ${usage ? error.message : describeError(error)}\n`);
    return usage ? EXIT.usage : EXIT.failed;
  }
}

async function dispatch(args: readonly string[], env: Environment): Promise<ExitCode> {
  const { values, positionals } = parse(args);
  if (values.version) return print(`${AGENT_VERSION}\n`);
  if (values.help) return print(HELP);
  const [command, ...rest] = positionals;
  if (command === undefined) throw new UsageError('no command given; see --help');
  if (rest.length > 0) throw new UsageError(`${command} takes no arguments; see --help`);
  switch (command) {
    case 'enroll':
      return enrollCommand(configure(values['environment-file'], env), createLog(), {
        waitMs: seconds('--wait', values.wait) * 1_000,
        replace: values.replace,
        bundleFile: values.bundle,
      });
    case 'renew-certificate':
      return renewCertificateCommand(configure(values['environment-file'], env), createLog());
    case 'run':
      return runCommand(configure(values['environment-file'], env), createLog());
    case 'doctor':
      return doctorCommand(configure(values['environment-file'], env), { json: values.json });
    default:
      throw new UsageError('unknown command; see --help');
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new UsageError(describeError(error), { cause: error });
  }
}

function print(text: string): ExitCode {
  process.stdout.write(text);
  return EXIT.done;
}

function configure(envFile: string | undefined, env: Environment): AgentConfig {
  const result = readConfig({ ...(envFile === undefined ? {} : readEnvFile(envFile)), ...env });
  if (!result.ok) throw new UsageError(result.problem);
  return result.config;
}

function readEnvFile(path: string): Environment {
  try {
    return parseEnv(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new UsageError(`--environment-file cannot be read: ${describeError(error)}`, { cause: error });
  }
}

function seconds(name: string, text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new UsageError(`${name} must be a whole number of seconds`);
  return Number(text);
}
