import { PKI_VARIABLES } from '../src/gateway/config.ts';
import type { PkiPaths } from '../src/pki/files.ts';
import { type FleetChoice, findFleet } from './connection.ts';

/** The PKI files that a gateway's variables name, or the first variable that is missing. */
export type NamedPki =
  | { readonly ok: true; readonly paths: PkiPaths }
  | { readonly ok: false; readonly missing: string };

/** The files of this host's gateway, by its own variables; a local fleet's are found through its state directory. */
export async function namedPki(flags: FleetChoice): Promise<NamedPki> {
  const { variables } = await findFleet(flags, process.env, process.cwd(), 'gateway');
  const valueOf = (name: keyof PkiPaths) => variables[PKI_VARIABLES[name]] ?? '';
  const names = ['gatewayCert', 'gatewayKey', 'trustBundle', 'caCert', 'caKey'] as const;
  const missing = names.find((name) => valueOf(name) === '');
  if (missing !== undefined) return { ok: false, missing: PKI_VARIABLES[missing] };
  return {
    ok: true,
    paths: {
      gatewayCert: valueOf('gatewayCert'),
      gatewayKey: valueOf('gatewayKey'),
      trustBundle: valueOf('trustBundle'),
      caCert: valueOf('caCert'),
      caKey: valueOf('caKey'),
    },
  };
}
