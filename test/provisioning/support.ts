import { randomBytes, randomUUID } from 'node:crypto';
import * as v from 'valibot';
import { createHetznerClient } from '../../src/hetzner/client.ts';
import { readUserData } from '../../src/hetzner/cloud-init/read-user-data.ts';
import { caBundleReader } from '../../src/provisioning/ca-bundle.ts';
import { nodeLocker } from '../../src/provisioning/node-lock.ts';
import type { ProvisionRequest } from '../../src/provisioning/plan.ts';
import type { ProvisioningPorts } from '../../src/provisioning/ports.ts';
import { columns, readDatabase } from '../../src/read/database.ts';
import { createHetznerStub, type HetznerStubOptions } from '../../stubs/hetzner/stub.ts';
import type { TestFleet } from '../gateway/support/fleet.ts';
import { releaseKeys } from '../hetzner/cloud-init/support.ts';
import { jumpingClock } from '../hetzner/support.ts';
import { Tap } from './tap.ts';

/** Longer than any action of the stub runs. */
const ACTIONS_DONE_MS = 10_000;

/** When hosts enrol: as soon as they boot (perhaps before anybody recorded their server), when they are waited for, or never. */
type Enrols = 'at_boot' | 'when_awaited' | 'never';

export interface WorldOptions extends HetznerStubOptions {
  readonly enrols?: Enrols;
  /**
   * What takes the name right before the first create: `ours`, the same create of a process that died long ago, or a `stranger`.
   */
  readonly nameTakenBy?: 'ours' | 'stranger';
}

/** A provider of its own beside a fleet's real gateway and database. Provider and workflow share a clock that jumps. */
export async function provisioningWorld(
  fleet: TestFleet,
  { enrols = 'at_boot', nameTakenBy, ...options }: WorldOptions = {},
) {
  const clock = jumpingClock(Date.now());
  const hosts: Promise<unknown>[] = [];
  const waiting: (() => Promise<unknown>)[] = [];
  const stub = createHetznerStub({
    nowMs: () => clock.now(),
    actionMs: 3_000,
    onBoot(_, userData) {
      if (userData === '') return undefined;
      const { environment, enrollmentSecret: secret } = readUserData(userData);
      const enroll = () => fleet.enroll({ nodeId: environment['PUSHLEFT_NODE_ID'] ?? '', secret });
      if (enrols === 'at_boot') hosts.push(enroll());
      if (enrols === 'when_awaited') waiting.push(enroll);
      return undefined;
    },
    ...options,
  });
  const { url, close } = await stub.listen();
  const nodes = readDatabase(fleet.database.pool);
  /** Waits until every host that booted has enrolled or been refused. */
  const hostsSettled = async () => {
    await stub.idle();
    await Promise.all(hosts);
  };
  const readNode = (nodeId: string) =>
    nodes
      .selectFrom('fleet.fleet_nodes')
      .select(columns('fleet_nodes'))
      .where('node_id', '=', nodeId)
      .executeTakeFirst();
  const { publicKey } = releaseKeys();

  let nameIsFree = true;
  async function takeName(create: Request): Promise<void> {
    if (nameTakenBy === undefined || !nameIsFree) return;
    nameIsFree = false;
    if (nameTakenBy === 'ours') await fetch(create);
    else await plant(v.parse(v.object({ name: v.string() }), await create.json()).name);
  }

  /** Puts a server into the project that the workflow did not make. */
  async function plant(name: string, labels: Record<string, string> = {}): Promise<void> {
    const server = {
      name,
      server_type: 'cx23',
      image: 'debian-12',
      location: 'fsn1',
      labels,
      start_after_create: false,
    };
    const response = await fetch(`${url}/servers`, {
      method: 'POST',
      headers: { authorization: 'Bearer stub-token', 'content-type': 'application/json' },
      body: JSON.stringify(server),
    });
    if (response.status !== 201) throw new Error(`planting ${name}: ${response.status} ${await response.text()}`);
    await clock.sleep(ACTIONS_DONE_MS);
  }

  const readCa = () => nodes.selectFrom('fleet.fleet_ca').select(columns('fleet_ca')).executeTakeFirst();

  /** The ports of one process; `caFile` null: the CA bundle is taken from the log. */
  function ports(
    tap = new Tap(),
    {
      caFile = fleet.pkiPaths.trustBundle,
      ...changes
    }: Partial<ProvisioningPorts['settings']> & { caFile?: string | null } = {},
  ): ProvisioningPorts {
    return {
      readCaBundle: caBundleReader(caFile, readCa),
      settings: {
        sshKeys: ['operator'],
        operatorCidrs: ['203.0.113.0/24'],
        gatewayUrl: fleet.gateway.agentUrl,
        enrollUrl: fleet.gateway.enrollUrl,
        releaseUrl: 'https://releases.example.org/agent',
        releasePublicKey: publicKey,
        agentVersion: '0.1.0',
        secretTtlMs: 900_000,
        ...changes,
      },
      waits: { providerPollMs: 500, providerTimeoutMs: 60_000, enrollmentPollMs: 250 },
      clock,
      randomBytes,
      hetzner: ({ signal, log }) =>
        createHetznerClient({
          baseUrl: url,
          token: 'stub-token',
          clock,
          random: () => 0.5,
          log,
          signal,
          fetch: (input, init) => {
            const request = new Request(input, init);
            return tap.through(labelOf(request), async () => {
              if (labelOf(request) === 'POST /servers') await takeName(request.clone());
              const response = await fetch(request);
              await hostsSettled();
              return response;
            });
          },
        }),
      execute: (definition, command) =>
        tap.through(`append ${definition.name}`, () =>
          fleet.operator.execute(definition, command, { actor: { kind: 'operator', id: 'ada@ops' } }),
        ),
      async readNode(nodeId) {
        const node = await readNode(nodeId);
        if (node?.provision_state === 'awaiting_enrollment')
          await Promise.all(waiting.splice(0).map((enroll) => enroll()));
        return node;
      },
      lockNode: nodeLocker({ url: fleet.database.url, program: 'provision ada@ops' }),
    };
  }

  return {
    stub,
    url,
    clock,
    ports,
    readNode,
    hostsSettled,
    /** Servers at the provider, as name and label. */
    servers: () => stub.state().servers.map(({ name, labels }) => ({ name, nodeId: labels['pushleft.node_id'] })),
    creates: () => stub.requests().filter(({ method, path }) => method === 'POST' && path === '/v1/servers').length,
    /** How many nodes of this name there are. */
    async nodesNamed(name: string) {
      const rows = await nodes.selectFrom('fleet.fleet_nodes').select('node_id').where('name', '=', name).execute();
      return rows.length;
    },
    plant,
    /** Deletes a server behind the workflow's back. */
    async remove(name: string) {
      const id = stub.state().servers.find((server) => server.name === name)?.id;
      const headers = { authorization: 'Bearer stub-token' };
      const response = await fetch(`${url}/servers/${id}`, { method: 'DELETE', headers });
      if (response.status !== 200) throw new Error(`removing ${name}: ${response.status} ${await response.text()}`);
      await clock.sleep(ACTIONS_DONE_MS);
      await stub.idle();
    },
    [Symbol.asyncDispose]: close,
  };
}

export type World = Awaited<ReturnType<typeof provisioningWorld>>;

/** A request that nothing stands against, for a name that nobody has. */
export function someRequest(
  changes: Partial<ProvisionRequest> = {},
): ProvisionRequest & { nodeId: string; name: string } {
  const nodeId = randomUUID();
  return {
    pool: 'application',
    region: 'fsn1',
    serverType: 'cx33',
    image: 'ubuntu-24.04',
    placementGroup: null,
    ...changes,
    nodeId,
    name: changes.name ?? `app-fsn1-${nodeId.slice(0, 8)}`,
  };
}

function labelOf({ method, url }: Request): string {
  return `${method} ${new URL(url).pathname.replace('/v1', '').replaceAll(/\d{1,12}/g, ':id')}`;
}
