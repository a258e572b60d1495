import * as v from 'valibot';
import { ENROLLMENT_SECRET_TTL_MS } from '../domain/node/provision.ts';
import { CloudInitValues } from '../hetzner/cloud-init/values.ts';
import { parseOperatorCidrs } from '../hetzner/firewall-rules.ts';
import { readCaFile } from './ca-bundle.ts';

/** What a host has to be told to enrol, and for how long it may. */
export interface EnrollmentSettings {
  /** The file that holds the CA bundle; null: the log tells which CAs there are. */
  readonly caFile: string | null;
  readonly gatewayUrl: string;
  readonly enrollUrl: string;
  readonly secretTtlMs: number;
}

/** Everything that provisioning is told by its environment (DESIGN §6). The token is a secret; nothing else is. */
export interface ProvisioningSettings extends EnrollmentSettings {
  readonly apiToken: string;
  /** Includes `/v1`. */
  readonly apiUrl: string;
  readonly sshKeys: readonly string[];
  readonly operatorCidrs: readonly string[];
  readonly releaseUrl: string;
  readonly releasePublicKey: string;
  readonly agentVersion: string;
}

/** The settings, or one line that names the variable and what is wrong with it, never its value. */
export type SettingsReading<T> =
  | { readonly ok: true; readonly settings: T }
  | { readonly ok: false; readonly variable: string; readonly message: string };

const { agentVersion, gatewayUrl, enrollUrl, releasePublicKey, releaseUrl } = CloudInitValues.entries;

/** The agent appends its own paths, so that one given here would silently be dropped. */
const isOrigin = v.check((url: string) => {
  const parsed = URL.parse(url);
  return parsed !== null && `${parsed.origin}/` === parsed.href;
}, 'must be an https origin such as https://gateway.example:8443');

const list = v.pipe(
  v.string(),
  v.transform((text) =>
    text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  ),
  v.nonEmpty('names nothing'),
);

const cidrs = v.pipe(
  list,
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    const parsed = parseOperatorCidrs(dataset.value);
    if (!parsed.ok) addIssue({ message: `holds what is ${parsed.refusal.message}` });
  }),
);

/** https, or plain http to this host, for the stub; the transport refuses anything else. */
const apiUrl = v.pipe(
  v.string(),
  v.check((text) => {
    const url = URL.parse(text);
    if (url === null || url.username !== '' || url.password !== '') return false;
    return (
      url.protocol === 'https:' ||
      (url.protocol === 'http:' && /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(url.hostname))
    );
  }, 'must be an https URL (or http to a loopback address) without credentials'),
);

const SECONDS = 'must be a whole number of seconds from 1 to 86400';

const enrollmentEntries = {
  PUSHLEFT_FLEET_GATEWAY_CA_FILE: v.optional(
    v.pipe(
      v.string(),
      v.rawCheck(({ dataset, addIssue }) => {
        if (!dataset.typed) return;
        const read = readCaFile(dataset.value);
        if (!read.ok) addIssue({ message: read.problem });
      }),
    ),
  ),
  PUSHLEFT_GATEWAY_URL: v.pipe(gatewayUrl, isOrigin),
  PUSHLEFT_ENROLL_URL: v.pipe(enrollUrl, isOrigin),
  PUSHLEFT_ENROLLMENT_SECRET_TTL_SECONDS: v.pipe(
    v.optional(v.string(), String(ENROLLMENT_SECRET_TTL_MS / 1_000)),
    v.regex(/^\d{1,5}$/, SECONDS),
    v.transform(Number),
    v.minValue(1, SECONDS),
    v.maxValue(86_400, SECONDS),
  ),
};
const enrollmentEnvironment = v.object(enrollmentEntries);

const environment = v.object({
  HETZNER_API_TOKEN: v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,512}$/, 'must be one word')),
  HETZNER_API_URL: v.optional(apiUrl, 'https://api.hetzner.cloud/v1'),
  PUSHLEFT_FLEET_SSH_KEYS: list,
  PUSHLEFT_FLEET_OPERATOR_CIDRS: cidrs,
  ...enrollmentEntries,
  PUSHLEFT_RELEASE_URL: releaseUrl,
  PUSHLEFT_RELEASE_PUBKEY: releasePublicKey,
  PUSHLEFT_AGENT_VERSION: agentVersion,
});

type Variables = Readonly<Record<string, string | undefined>>;

/** Reads and checks the environment and the CA file. An empty variable counts as not set. Tells the first problem. */
export function readProvisioningSettings(env: Variables): SettingsReading<ProvisioningSettings> {
  return reading(environment, env, (values) => ({
    ...enrollmentSettings(values),
    apiToken: values.HETZNER_API_TOKEN,
    apiUrl: values.HETZNER_API_URL,
    sshKeys: values.PUSHLEFT_FLEET_SSH_KEYS,
    operatorCidrs: values.PUSHLEFT_FLEET_OPERATOR_CIDRS,
    releaseUrl: values.PUSHLEFT_RELEASE_URL,
    releasePublicKey: values.PUSHLEFT_RELEASE_PUBKEY,
    agentVersion: values.PUSHLEFT_AGENT_VERSION,
  }));
}

/** As {@link readProvisioningSettings}, for those who enrol a host anew: no provider is asked. */
export function readEnrollmentSettings(env: Variables): SettingsReading<EnrollmentSettings> {
  return reading(enrollmentEnvironment, env, enrollmentSettings);
}

function enrollmentSettings(values: v.InferOutput<typeof enrollmentEnvironment>): EnrollmentSettings {
  return {
    caFile: values.PUSHLEFT_FLEET_GATEWAY_CA_FILE ?? null,
    gatewayUrl: values.PUSHLEFT_GATEWAY_URL,
    enrollUrl: values.PUSHLEFT_ENROLL_URL,
    secretTtlMs: values.PUSHLEFT_ENROLLMENT_SECRET_TTL_SECONDS * 1_000,
  };
}

function reading<S extends typeof environment | typeof enrollmentEnvironment, T>(
  schema: S,
  env: Variables,
  settingsOf: (values: v.InferOutput<S>) => T,
): SettingsReading<T> {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const read = v.safeParse(schema, set, { abortEarly: true });
  if (read.success) return { ok: true, settings: settingsOf(read.output) };
  const [issue] = read.issues;
  const variable = v.getDotPath(issue) ?? 'environment';
  const missing = issue.input === undefined;
  const what = missing ? 'is not set' : issue.type === 'max_length' ? 'is too long' : issue.message;
  return { ok: false, variable, message: `${variable} ${what}` };
}
