import { readFileSync } from 'node:fs';

/** Set by agent/build.ts; absent when the sources run as they are. */
declare const BUNDLED_AGENT_VERSION: string | undefined;

function ownVersion(): string {
  if (typeof BUNDLED_AGENT_VERSION === 'string') return BUNDLED_AGENT_VERSION;
  const manifest: { version: string } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return manifest.version;
}

/** The version this agent is, told to the gateway with each lease. */
export const AGENT_VERSION: string = ownVersion();
