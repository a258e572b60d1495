import * as v from 'valibot';
import type { CreateServerRequest, HetznerApi } from './api.ts';
import { HetznerError, hasCode } from './errors.ts';
import { NODE_ID_LABEL } from './labels.ts';
import { Action, Firewall, Image, Location, PlacementGroup, Server, ServerType, SshKey } from './resources.ts';
import { type Call, createTransport, type Send, type TransportOptions } from './transport.ts';

/** The largest page the API gives; fewer requests, and the rate limit counts requests. */
const PAGE_SIZE = 50;
const ACTIONS_AT_ONCE = 25;

type Query = readonly (readonly [string, string])[];

/**
 * A client of the Hetzner Cloud API. `baseUrl` includes `/v1`. Reads, set_rules, power-on and delete are repeated after 5xx and
 * transport errors, creates never are; every call waits out a 429 within bounds. The token shows in no error, log or inspection.
 */
export function createHetznerClient(options: TransportOptions): HetznerApi {
  const send = createTransport(options);
  const named = async <T extends { name: string }>(path: string, item: v.GenericSchema<unknown, T>, name: string) =>
    (await list(send, path, item, [['name', name]])).find((found) => found.name === name);
  return {
    listServerTypes: () => list(send, 'server_types', ServerType),
    listLocations: () => list(send, 'locations', Location),
    listImages: (name) =>
      list(send, 'images', Image, [
        ['name', name],
        ['include_deprecated', 'true'],
      ]),
    listSshKeys: () => list(send, 'ssh_keys', SshKey),
    listPlacementGroups: () => list(send, 'placement_groups', PlacementGroup),
    findFirewall: (name) => named('firewalls', Firewall, name),
    createFirewall: async (request) =>
      (await send(create('firewalls', request, v.looseObject({ firewall: Firewall })))).firewall,
    setFirewallRules: async (firewallId, rules) => {
      const answer = v.looseObject({ actions: v.array(Action) });
      return (await send(repeatablePost(`firewalls/${firewallId}/actions/set_rules`, answer, { rules }))).actions;
    },
    findServersOfNode: (nodeId) => list(send, 'servers', Server, [['label_selector', `${NODE_ID_LABEL}=${nodeId}`]]),
    findServerByName: (name) => named('servers', Server, name),
    getServer: (serverId) =>
      unlessGone(
        send({
          method: 'get',
          path: `servers/${serverId}`,
          answer: v.looseObject({ server: Server }),
          repeatable: true,
        }),
        ({ server }) => server,
      ),
    createServer: async (request) => {
      const { server, action, next_actions } = await send(create('servers', serverBody(request), CreatedAnswer));
      return { server, actions: [action, ...next_actions] };
    },
    deleteServer: (serverId) =>
      unlessGone(
        send({ method: 'delete', path: `servers/${serverId}`, answer: ActionAnswer, repeatable: true }),
        ({ action }) => action,
      ),
    powerOnServer: async (serverId) =>
      (await send(repeatablePost(`servers/${serverId}/actions/poweron`, ActionAnswer))).action,
    getActions: (actionIds) => listActions(send, actionIds),
  };
}

const ActionAnswer = v.looseObject({ action: Action });
const CreatedAnswer = v.looseObject({ server: Server, action: Action, next_actions: v.optional(v.array(Action), []) });

function create<T>(path: string, body: unknown, answer: v.GenericSchema<unknown, T>): Call<T> {
  return { method: 'post', path, body, answer, repeatable: false };
}

function repeatablePost<T>(path: string, answer: v.GenericSchema<unknown, T>, body?: unknown): Call<T> {
  return { method: 'post', path, answer, repeatable: true, ...(body === undefined ? {} : { body }) };
}

function serverBody(request: CreateServerRequest) {
  return {
    name: request.name,
    server_type: request.serverType,
    location: request.location,
    image: request.imageId,
    ssh_keys: request.sshKeyIds,
    firewalls: [{ firewall: request.firewallId }],
    ...(request.placementGroupId === null ? {} : { placement_group: request.placementGroupId }),
    labels: request.labels,
    user_data: request.userData,
    start_after_create: true,
  };
}

/** Every page of a list. The document's key is the path. */
async function list<T>(
  send: Send,
  path: string,
  item: v.GenericSchema<unknown, T>,
  query: Query = [],
): Promise<readonly T[]> {
  const answer = v.pipe(
    v.looseObject({ meta: v.looseObject({ pagination: v.looseObject({ next_page: v.nullable(v.number()) }) }) }),
    v.transform((document) => ({ items: document[path], nextPage: document.meta.pagination.next_page })),
    v.object({ items: v.array(item), nextPage: v.nullable(v.number()) }),
  );
  const items: T[] = [];
  let page: number | null = 1;
  while (page !== null) {
    const numbered: Query = [...query, ['page', String(page)], ['per_page', String(PAGE_SIZE)]];
    const read: { items: T[]; nextPage: number | null } = await send({
      method: 'get',
      path,
      query: numbered,
      answer,
      repeatable: true,
    });
    items.push(...read.items);
    if (read.nextPage !== null && read.nextPage <= page)
      throw unreadable(`GET ${path}: page ${page} names page ${read.nextPage} as the next`);
    page = read.nextPage;
  }
  return items;
}

/** `GET /actions` takes ids and knows no pages, so as many ids at once as a default page holds. */
async function listActions(send: Send, actionIds: readonly number[]): Promise<readonly Action[]> {
  const answer = v.looseObject({ actions: v.array(Action) });
  const actions: Action[] = [];
  for (let from = 0; from < actionIds.length; from += ACTIONS_AT_ONCE) {
    const query: Query = actionIds.slice(from, from + ACTIONS_AT_ONCE).map((id) => ['id', String(id)]);
    actions.push(...(await send({ method: 'get', path: 'actions', query, answer, repeatable: true })).actions);
  }
  return actions;
}

async function unlessGone<T, R>(answer: Promise<T>, pick: (document: T) => R): Promise<R | undefined> {
  try {
    return pick(await answer);
  } catch (error) {
    if (hasCode(error, 'not_found')) return undefined;
    throw error;
  }
}

function unreadable(message: string): HetznerError {
  return new HetznerError({ code: 'answer_unreadable', status: 200, message });
}
