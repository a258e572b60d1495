import type { GatewayClient } from './gateway-client.ts';
import type { Identity, IdentityStore } from './identity-store.ts';
import type { Log } from './log.ts';

/**
 * The client to start with. That is the identity in force, unless the one before it is still on disk, which means that the new one has never
 * leased: then the gateway is asked, and when it does not take the new one but takes the former, that one is used. The new one
 * may be refused because the gateway's history was restored to before it.
 */
export async function firstClient(
  store: Pick<IdentityStore, 'former'>,
  current: Identity,
  connect: (identity: Identity) => GatewayClient,
  log: Log,
  signal: AbortSignal,
): Promise<GatewayClient> {
  const client = connect(current);
  const former = await store.former();
  if (former === undefined || (await isTaken(client, signal))) return client;
  const formerClient = connect(former);
  if (!(await isTaken(formerClient, signal))) {
    await formerClient.close();
    return client;
  }
  await client.close();
  const refused = { generation: former.generation, refused_generation: current.generation };
  log.error(refused, 'the gateway does not take the identity in force; going on with the former one');
  return formerClient;
}

async function isTaken(client: GatewayClient, signal: AbortSignal): Promise<boolean> {
  return (await client.askIdentity(signal)).kind === 'known';
}
