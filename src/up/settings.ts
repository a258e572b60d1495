import { isAbsolute } from 'node:path';
import { LEASE_WAIT_MAX_SECONDS } from '../protocol/limits.ts';

/** Who a setting is for: one of the programs that `up` starts, the agents on its machines, or operators' commands. */
type Recipient = 'gateway' | 'scheduler' | 'agents' | 'operator';

interface Setting {
  readonly for: readonly Recipient[];
  /** What a fleet on one machine gets where nobody says otherwise; absent: the program's own default. */
  readonly preset?: string;
  readonly accepts: Accepts;
}

/** The values a setting may have: what they are, in words, and whether a text is one. */
interface Accepts {
  readonly what: string;
  readonly test: (text: string) => boolean;
}

/** Levels of a program's log, the most talkative first. */
export const LOG_LEVELS: readonly string[] = ['debug', 'info', 'warn', 'error', 'silent'];

const whole = (least: number, most: number, unit = ' of seconds'): Accepts => ({
  what: `a whole number${unit} from ${least} to ${most}`,
  test: (text) => /^\d{1,8}$/.test(text) && Number(text) >= least && Number(text) <= most,
});
const decimal = (least: number, most: number): Accepts => ({
  what: `a number of seconds from ${least} to ${most}`,
  test: (text) => /^\d{1,6}(?:\.\d{1,3})?$/.test(text) && Number(text) >= least && Number(text) <= most,
});
const oneOf = (values: readonly string[]): Accepts => ({
  what: `one of ${values.join(', ')}`,
  test: (text) => values.includes(text),
});
const absolutePath: Accepts = { what: 'an absolute path', test: isAbsolute };
/** Checked where commands read it (operatorActor). */
const label: Accepts = { what: 'a name', test: () => true };

const DAY_SECONDS = 86_400;

/**
 * Every documented setting that `up` hands on from its own environment (docs/configuration.md), and to whom. What `up` itself decides
 * (addresses, files, logins, tokens) is not among them: an environment meant for production must not leak into a fleet of stubs.
 */
export const SETTINGS = {
  PUSHLEFT_LEASE_SECONDS: { for: ['gateway', 'scheduler'], accepts: whole(3, 3_600) },
  // Agents do not renew yet: with the day of production, a fleet that was stopped over a weekend could not be started again.
  PUSHLEFT_AGENT_CERT_LIFETIME_SECONDS: {
    for: ['gateway'],
    preset: String(30 * DAY_SECONDS),
    accepts: whole(1, 31_536_000),
  },
  PUSHLEFT_NODE_UNHEALTHY_AFTER: { for: ['scheduler'], accepts: decimal(0.1, 86_400) },
  PUSHLEFT_NODE_LOST_AFTER_SECONDS: { for: ['scheduler'], accepts: decimal(0.2, 604_800) },
  PUSHLEFT_ALLOW_SHORT_THRESHOLDS: { for: ['scheduler'], accepts: oneOf(['0', '1']) },
  PUSHLEFT_SCHEDULER_INTERVAL_SECONDS: { for: ['scheduler'], accepts: decimal(0.01, 60) },
  PUSHLEFT_CHECKPOINT_KEY_FILE: { for: ['scheduler'], accepts: absolutePath },
  PUSHLEFT_CHECKPOINT_DIR: { for: ['scheduler'], accepts: absolutePath },
  PUSHLEFT_CHECKPOINT_INTERVAL_SECONDS: { for: ['scheduler'], accepts: decimal(1, 604_800) },
  PUSHLEFT_AGENT_RENEW_CHECK_SECONDS: { for: ['agents'], accepts: whole(1, 86_400) },
  PUSHLEFT_AGENT_LEASE_WAIT_SECONDS: { for: ['agents'], accepts: whole(0, LEASE_WAIT_MAX_SECONDS) },
  PUSHLEFT_AGENT_STOP_GRACE_SECONDS: { for: ['agents'], accepts: whole(0, 3_600) },
  PUSHLEFT_RUNTIME: { for: ['agents'], preset: 'process', accepts: oneOf(['docker', 'process']) },
  PUSHLEFT_DOCKER_SOCKET: { for: ['agents'], accepts: absolutePath },
  PUSHLEFT_ENROLLMENT_SECRET_TTL_SECONDS: { for: ['operator'], accepts: whole(1, 86_400) },
  PUSHLEFT_LOG_LEVEL: { for: ['gateway', 'scheduler'], accepts: oneOf(LOG_LEVELS) },
  PUSHLEFT_OPERATOR: { for: ['operator'], accepts: label },
} as const satisfies Readonly<Record<string, Setting>>;

/** The settings of one recipient: those of the environment, then the presets. An empty variable counts as not set. */
export function settingsFor(
  recipient: Recipient,
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const entries = Object.entries<Setting>(SETTINGS).flatMap(([name, setting]) => {
    const value = env[name] === undefined || env[name] === '' ? setting.preset : env[name];
    return setting.for.includes(recipient) && value !== undefined ? [[name, value] as const] : [];
  });
  return Object.fromEntries(entries);
}

/** The first setting of the environment that the program it is for would refuse: one line that names the variable, not its value. */
export function settingProblem(env: Readonly<Record<string, string | undefined>>): string | undefined {
  for (const [name, { accepts }] of Object.entries<Setting>(SETTINGS)) {
    const value = env[name] ?? '';
    if (value !== '' && !accepts.test(value)) return `${name} must be ${accepts.what}`;
  }
  return undefined;
}
