import { readFileSync } from 'node:fs';
import { HOST_PATHS } from './host-paths.ts';
import { releaseKeyPem } from './release-key.ts';
import type { CloudInitValues } from './values.ts';

/** A file that the script writes: whole lines, mode in octal digits. */
export interface HostFile {
  readonly path: string;
  readonly mode: '0600' | '0644';
  readonly content: string;
}

/** Every file of a node's bootstrap, in the order of writing. */
export function hostFiles(values: CloudInitValues): readonly HostFile[] {
  return [
    { path: HOST_PATHS.environment, mode: '0644', content: agentEnvironment(values) },
    { path: HOST_PATHS.gatewayCa, mode: '0644', content: values.gatewayCaPem },
    { path: HOST_PATHS.releaseKey, mode: '0644', content: releaseKeyPem(values.releasePublicKey) },
    { path: HOST_PATHS.enrollmentSecret, mode: '0600', content: `${values.enrollmentSecret}\n` },
    { path: '/etc/modules-load.d/pushleft.conf', mode: '0644', content: 'br_netfilter\n' },
    { path: '/etc/sysctl.d/90-pushleft.conf', mode: '0644', content: 'net.bridge.bridge-nf-call-iptables=1\n' },
    unit('pushleft-agent.service'),
    unit('pushleft-agent-update.service'),
  ];
}

/** Read by systemd's EnvironmentFile and by bash alike, so values are bare words. */
function agentEnvironment(values: CloudInitValues): string {
  const variables = {
    PUSHLEFT_NODE_ID: values.nodeId,
    PUSHLEFT_GATEWAY_URL: values.gatewayUrl,
    PUSHLEFT_ENROLL_URL: values.enrollUrl,
    PUSHLEFT_AGENT_CA: HOST_PATHS.gatewayCa,
    PUSHLEFT_AGENT_VERSION: values.agentVersion,
    PUSHLEFT_RELEASE_URL: values.releaseUrl,
    PUSHLEFT_RELEASE_PUBKEY: values.releasePublicKey,
  };
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}

function unit(name: string): HostFile {
  return { path: `/etc/systemd/system/${name}`, mode: '0644', content: template(name) };
}

/** A template that lies beside this module. */
export function template(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}
