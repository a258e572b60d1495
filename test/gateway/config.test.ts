import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { type GatewayConfig, readGatewayConfig } from '../../src/gateway/config.ts';
import { startGateway } from '../../src/gateway/gateway.ts';
import { ensureDevelopmentPki } from '../../src/pki/development-ca.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { gatewayEnvironment } from './support/fleet.ts';

const PATHS = { gatewayCert: 'c', gatewayKey: 'k', trustBundle: 'b', caCert: 'ca', caKey: 'cak' };
const URL_WITH_PASSWORD = 'postgresql://gateway:hunter2@127.0.0.1:1/fleet';

function read(changes: Record<string, string | undefined> = {}) {
  return readGatewayConfig({ ...gatewayEnvironment(URL_WITH_PASSWORD, PATHS), ...changes }, '9.9.9');
}

describe('the environment', () => {
  test('complete: read with its defaults', () => {
    const {
      PUSHLEFT_GATEWAY_BIND: _,
      PUSHLEFT_AGENT_ENROLL_BIND: _e,
      PUSHLEFT_GATEWAY_ADMIN_BIND: _a,
      ...rest
    } = gatewayEnvironment(URL_WITH_PASSWORD, PATHS);
    expect(readGatewayConfig(rest, '9.9.9')).toEqual({
      ok: true,
      config: {
        databaseUrl: URL_WITH_PASSWORD,
        programVersion: '9.9.9',
        agentBind: { host: '0.0.0.0', port: 8443 },
        enrollBind: { host: '0.0.0.0', port: 8444 },
        adminBind: { host: '127.0.0.1', port: 8445 },
        pki: PATHS,
        certificateLifetimeSeconds: 86_400,
        leaseMs: 60_000,
        probeAddress: null,
        targetVersion: null,
      },
    });
  });

  test.each([
    ['DATABASE_URL', undefined, 'is not set'],
    ['DATABASE_URL', 'mysql://u:hunter2@h/d', 'is not a postgresql:// URL'],
    ['PUSHLEFT_GATEWAY_KEY', undefined, 'is not set'],
    ['PUSHLEFT_AGENT_CLIENT_CA', '', 'names no file'],
    ['PUSHLEFT_GATEWAY_BIND', 'localhost:8443', 'is not an IP address and a port, like 127.0.0.1:8443 or [::1]:8443'],
    ['PUSHLEFT_GATEWAY_BIND', '127.0.0.1:70000', 'is not an IP address and a port, like 127.0.0.1:8443 or [::1]:8443'],
    [
      'PUSHLEFT_GATEWAY_ADMIN_BIND',
      '0.0.0.0:8445',
      'is not a loopback address; health and metrics are for this host alone',
    ],
    ['PUSHLEFT_AGENT_CERT_LIFETIME_SECONDS', '1e9', 'is not a whole number from 1 to 31536000'],
    ['PUSHLEFT_LEASE_SECONDS', '2', 'is not a whole number from 3 to 3600'],
    ['PUSHLEFT_AGENT_VERSION', 'a b', 'is not a version'],
  ])('%s=%s: one line that names it', (variable, value, reason) => {
    expect(read({ [variable]: value })).toEqual({ ok: false, variable, message: `${variable} ${reason}` });
  });

  test('an IPv6 address: in brackets', () => {
    expect(read({ PUSHLEFT_GATEWAY_BIND: '[::1]:8443' })).toMatchObject({
      ok: true,
      config: { agentBind: { host: '::1', port: 8443 } },
    });
  });
});

describe('the start', () => {
  const log = pino({ level: 'silent' });

  test('a key that the group may read: refused, with what to do', async () => {
    await using folder = await temporaryDirectory();
    const config = await configIn(folder.path);
    await chmod(config.pki.caKey, 0o640);
    await expect(startGateway(config, { log })).rejects.toThrow(
      `PUSHLEFT_AGENT_CA_KEY: ${config.pki.caKey}: a private key that group or others may read or write (mode 0640); run: chmod 0600 ${config.pki.caKey}`,
    );
  });

  test('a file that is no certificate: refused by its variable', async () => {
    await using folder = await temporaryDirectory();
    const config = await configIn(folder.path);
    await writeFile(config.pki.trustBundle, 'nothing');
    await expect(startGateway(config, { log })).rejects.toThrow(/^PUSHLEFT_AGENT_CLIENT_CA: /);
  });

  test('an admin address that others could reach: refused, also when the configuration was made by hand', async () => {
    await using folder = await temporaryDirectory();
    const config = { ...(await configIn(folder.path)), adminBind: { host: '0.0.0.0', port: 0 } };
    await expect(startGateway(config, { log })).rejects.toThrow(
      'PUSHLEFT_GATEWAY_ADMIN_BIND is not a loopback address',
    );
  });

  test('a port in use: refused by its variable', async () => {
    await using folder = await temporaryDirectory();
    const config = await configIn(folder.path);
    const first = await startGateway(config, { log });
    try {
      const port = Number(new URL(first.agentUrl).port);
      const again = { ...config, agentBind: { host: '127.0.0.1', port } };
      await expect(startGateway(again, { log })).rejects.toThrow(
        'PUSHLEFT_GATEWAY_BIND cannot be listened on (EADDRINUSE)',
      );
    } finally {
      await first.close();
    }
  });
});

/** A configuration with PKI files of its own, and a database that is away. */
async function configIn(folder: string): Promise<GatewayConfig> {
  const names = { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] };
  const pki = await ensureDevelopmentPki(join(folder, 'pki'), { ...names, now: Date.now() });
  const reading = readGatewayConfig(gatewayEnvironment(URL_WITH_PASSWORD, pki), '0.1.0');
  if (!reading.ok) throw new Error(reading.message);
  return reading.config;
}
