/** Who a setting is for: one of the programs that `up` starts, the agents on its machines, or operators' commands. */
type Recipient = 'gateway' | 'scheduler' | 'agents' | 'operator';

interface Setting {
  readonly for: readonly Recipient[];
  /** What a fleet on one machine gets where nobody says otherwise; absent: the program's own default. */
  readonly preset?: string;
}

const DAY_SECONDS = 86_400;

/**
 * Every documented setting that `up` hands on from its own environment (docs/configuration.md), and to whom. What `up` itself decides
 * (addresses, files, logins, tokens) is not among them: an environment meant for production must not leak into a fleet of stubs.
 */
export const SETTINGS = {
  PUSHLEFT_LEASE_SECONDS: { for: ['gateway', 'scheduler'] },
  // Agents do not renew yet: with the day of production, a fleet that was stopped over a weekend could not be started again.
  PUSHLEFT_AGENT_CERT_LIFETIME_SECONDS: { for: ['gateway'], preset: String(30 * DAY_SECONDS) },
  PUSHLEFT_NODE_UNHEALTHY_AFTER: { for: ['gateway', 'scheduler'] },
  PUSHLEFT_NODE_LOST_AFTER_SECONDS: { for: ['gateway', 'scheduler'] },
  PUSHLEFT_SCHEDULER_INTERVAL_SECONDS: { for: ['scheduler'] },
  PUSHLEFT_AGENT_RENEW_CHECK_SECONDS: { for: ['agents'] },
  PUSHLEFT_AGENT_LEASE_WAIT_SECONDS: { for: ['agents'] },
  PUSHLEFT_AGENT_STOP_GRACE_SECONDS: { for: ['agents'] },
  PUSHLEFT_RUNTIME: { for: ['agents'], preset: 'process' },
  PUSHLEFT_DOCKER_SOCKET: { for: ['agents'] },
  PUSHLEFT_ENROLLMENT_SECRET_TTL_SECONDS: { for: ['operator'] },
  PUSHLEFT_LOG_LEVEL: { for: ['gateway', 'scheduler'] },
  PUSHLEFT_OPERATOR: { for: ['operator'] },
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
