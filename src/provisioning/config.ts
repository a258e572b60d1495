import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import { ENROLLMENT_SECRET_TTL_MS } from '../domain/node/provision.ts';
import { CloudInitValues } from '../hetzner/cloud-init/values.ts';
import { parseOperatorCidrs } from '../hetzner/firewall-rules.ts';

/** Everything that provisioning is told by its environment (DESIGN §6). The token is a secret; nothing else is. */
export interface ProvisioningSettings {
  readonly apiToken: string;
  /** Includes `/v1`. */
  readonly apiUrl: string;
  readonly sshKeys: readonly string[];
  readonly operatorCidrs: readonly string[];
  readonly gatewayCaPem: string;
  readonly gatewayUrl: string;
  readonly enrollUrl: string;
  readonly releaseUrl: string;
  readonly releasePublicKey: string;
  readonly agentVersion: string;
  readonly secretTtlMs: number;
}

/** The settings, or one line that names the variable and what is wrong with it, never its value. */
export type SettingsReading =
  | { readonly ok: true; readonly settings: ProvisioningSettings }
  | { readonly ok: false; readonly variable: string; readonly message: string };

const CA_FILE_MAX_BYTES = 65_536;
const { agentVersion, gatewayCaPem, gatewayUrl, enrollUrl, releasePublicKey, releaseUrl } = CloudInitValues.entries;

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

const environment = v.object({
  HETZNER_API_TOKEN: v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,512}$/, 'must be one word')),
  HETZNER_API_URL: v.optional(apiUrl, 'https://api.hetzner.cloud/v1'),
  PUSHLEFT_FLEET_SSH_KEYS: list,
  PUSHLEFT_FLEET_OPERATOR_CIDRS: cidrs,
  PUSHLEFT_FLEET_GATEWAY_CA_FILE: v.string(),
  PUSHLEFT_GATEWAY_URL: v.pipe(gatewayUrl, isOrigin),
  PUSHLEFT_ENROLL_URL: v.pipe(enrollUrl, isOrigin),
  PUSHLEFT_RELEASE_URL: releaseUrl,
  PUSHLEFT_RELEASE_PUBKEY: releasePublicKey,
  PUSHLEFT_AGENT_VERSION: agentVersion,
  PUSHLEFT_ENROLLMENT_SECRET_TTL_SECONDS: v.pipe(
    v.optional(v.string(), String(ENROLLMENT_SECRET_TTL_MS / 1_000)),
    v.regex(/^\d{1,5}$/, SECONDS),
    v.transform(Number),
    v.minValue(1, SECONDS),
    v.maxValue(86_400, SECONDS),
  ),
});

/** Reads and checks the environment and the CA file. An empty variable counts as not set. Tells the first problem. */
export function readProvisioningSettings(env: Readonly<Record<string, string | undefined>>): SettingsReading {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const read = v.safeParse(environment, set, { abortEarly: true });
  if (!read.success) {
    const [issue] = read.issues;
    const variable = v.getDotPath(issue) ?? 'environment';
    const missing = issue.input === undefined;
    return problem(variable, missing ? 'is not set' : issue.type === 'max_length' ? 'is too long' : issue.message);
  }
  const values = read.output;
  const ca = readCa(values.PUSHLEFT_FLEET_GATEWAY_CA_FILE);
  if ('trouble' in ca) return problem('PUSHLEFT_FLEET_GATEWAY_CA_FILE', ca.trouble);
  return {
    ok: true,
    settings: {
      apiToken: values.HETZNER_API_TOKEN,
      apiUrl: values.HETZNER_API_URL,
      sshKeys: values.PUSHLEFT_FLEET_SSH_KEYS,
      operatorCidrs: values.PUSHLEFT_FLEET_OPERATOR_CIDRS,
      gatewayCaPem: ca.pem,
      gatewayUrl: values.PUSHLEFT_GATEWAY_URL,
      enrollUrl: values.PUSHLEFT_ENROLL_URL,
      releaseUrl: values.PUSHLEFT_RELEASE_URL,
      releasePublicKey: values.PUSHLEFT_RELEASE_PUBKEY,
      agentVersion: values.PUSHLEFT_AGENT_VERSION,
      secretTtlMs: values.PUSHLEFT_ENROLLMENT_SECRET_TTL_SECONDS * 1_000,
    },
  };
}

function readCa(path: string): { readonly pem: string } | { readonly trouble: string } {
  let pem: string;
  try {
    pem = readFileSync(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    return { trouble: `names a file that cannot be read (${code})` };
  }
  if (pem.length > CA_FILE_MAX_BYTES) return { trouble: `names a file of more than ${CA_FILE_MAX_BYTES} bytes` };
  const checked = v.safeParse(gatewayCaPem, pem, { abortEarly: true });
  return checked.success ? { pem } : { trouble: `names a file that ${checked.issues[0].message}` };
}

function problem(variable: string, what: string): SettingsReading {
  return { ok: false, variable, message: `${variable} ${what}` };
}
