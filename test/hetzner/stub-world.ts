import { createHetznerClient } from '../../src/hetzner/client.ts';
import { convergeFirewall } from '../../src/hetzner/converge-firewall.ts';
import { nodeLabels } from '../../src/hetzner/labels.ts';
import { createHetznerStub, type HetznerStubOptions } from '../../stubs/hetzner/stub.ts';
import { jumpingClock } from './support.ts';

export const NODE_ID = '0b8f6c1e-5d3a-4c1f-9a53-7e2d1c9b4a60';
export const NAME = 'app-fsn1-7k2m';

/** The provider's stub and our client on one clock, which jumps: no test waits for a server to boot. */
export async function stubWorld(options: HetznerStubOptions = {}) {
  const clock = jumpingClock();
  const stub = createHetznerStub({ nowMs: () => clock.now(), actionMs: 3_000, ...options });
  const { url, close } = await stub.listen();
  const api = createHetznerClient({ baseUrl: url, token: 'stub-token', clock, random: () => 0.5 });
  const waiting = { clock, pollMs: 500, timeoutMs: 60_000 };
  const firewall = await convergeFirewall(api, 'application', ['203.0.113.0/24'], waiting);
  if (!firewall.ok) throw new Error(firewall.refusal.message);
  const labels = nodeLabels(NODE_ID, 'application');
  const [image] = (await api.listImages('ubuntu-24.04')).filter(({ architecture }) => architecture === 'x86');
  const request = {
    name: NAME,
    serverType: 'cx33',
    location: 'fsn1',
    imageId: image?.id ?? 0,
    sshKeyIds: (await api.listSshKeys()).map(({ id }) => id),
    firewallId: firewall.value.firewallId,
    placementGroupId: null,
    labels,
    userData: '#!/bin/bash\ntrue\n',
  };
  /** Requests so far that changed something or tried to, as `METHOD path status`. */
  const writes = () =>
    stub
      .requests()
      .filter(({ method }) => method !== 'GET')
      .map(({ method, path, status }) => `${method} ${path.replace('/v1', '')} ${status}`);
  return { api, clock, stub, waiting, request, labels, writes, [Symbol.asyncDispose]: close };
}
