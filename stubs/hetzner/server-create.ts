import { randomBytes } from 'node:crypto';
import type { Context } from 'hono';
import * as v from 'valibot';
import { actionView } from './actions.ts';
import { allocateIpv4, allocateIpv6 } from './addresses.ts';
import { listedTypes } from './catalogue.ts';
import { ApiError, invalidField, notFound, notUnique } from './errors.ts';
import { parseBody, type StubEnv } from './http.ts';
import { LabelsSchema } from './labels.ts';
import type { Project } from './project.ts';
import type { Image, ServerType } from './seeds.ts';
import { serverView } from './server-view.ts';
import type { Server } from './state.ts';

/** What the API takes. */
const MAX_USER_DATA_BYTES = 32_768;
const PLACEMENT_GROUP_MEMBERS = 10;

const IdOrName = v.pipe(
  v.union([v.pipe(v.number(), v.integer()), v.pipe(v.string(), v.minLength(1))]),
  v.transform((reference) => String(reference)),
);
const Id = v.pipe(v.number(), v.integer());

const HOST_LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const HOSTNAME = new RegExp(`^${HOST_LABEL}(?:\\.${HOST_LABEL})*$`);

/** A server name: a host name of RFC 1123, at most 253 characters. */
export const ServerNameSchema = v.pipe(
  v.string(),
  v.maxLength(253, 'is too long'),
  v.regex(HOSTNAME, 'must be a valid hostname as per RFC 1123'),
);

const CreateServerSchema = v.object({
  name: ServerNameSchema,
  server_type: IdOrName,
  image: IdOrName,
  location: v.nullish(IdOrName),
  ssh_keys: v.nullish(v.array(IdOrName), []),
  firewalls: v.nullish(v.array(v.object({ firewall: Id })), []),
  placement_group: v.nullish(Id),
  user_data: v.nullish(
    v.pipe(
      v.string(),
      v.check(
        (text) => Buffer.byteLength(text) <= MAX_USER_DATA_BYTES,
        `Length must be at most ${MAX_USER_DATA_BYTES} bytes.`,
      ),
    ),
    '',
  ),
  labels: v.nullish(LabelsSchema, {}),
  networks: v.nullish(v.pipe(v.array(Id), v.maxLength(0, 'this stub has no networks')), []),
  volumes: v.nullish(v.pipe(v.array(Id), v.maxLength(0, 'this stub has no volumes')), []),
  public_net: v.nullish(
    v.object({ enable_ipv4: v.nullish(v.boolean(), true), enable_ipv6: v.nullish(v.boolean(), true) }),
    { enable_ipv4: true, enable_ipv6: true },
  ),
  start_after_create: v.nullish(v.boolean(), true),
});

type CreateServer = v.InferOutput<typeof CreateServerSchema>;

/** POST /servers: 201 with the server, its `create_server` action, and `start_server` among the next ones. */
export async function createServer(c: Context<StubEnv>, project: Project): Promise<Response> {
  const wanted = await parseBody(c, CreateServerSchema);
  const server = newServer(project, wanted);
  project.state.servers.push(server);
  const resources = [{ id: server.id, type: 'server' as const }];
  const fateOf = c.var.fateOf;
  const create = project.startAction({ command: 'create_server', resources, fate: fateOf('create_server') });
  const next = wanted.start_after_create
    ? [project.startAction({ command: 'start_server', resources, fate: fateOf('start_server'), after: create })]
    : [];
  return c.json(
    {
      server: serverView(project, server),
      action: actionView(project, create),
      next_actions: next.map((action) => actionView(project, action)),
      root_password: server.sshKeyIds.length > 0 ? null : randomBytes(15).toString('base64url'),
    },
    201,
  );
}

/** Everything is checked before anything is taken; throws what the API answers. */
function newServer(project: Project, wanted: CreateServer): Server {
  const { state } = project;
  const type = byIdOrName(listedTypes(project), wanted.server_type, 'server type');
  const location = placeFor(project, type, wanted.location ?? undefined);
  const image = imageFor(project, type, wanted.image);
  const sshKeyIds = wanted.ssh_keys.map((reference) => byIdOrName(state.sshKeys, reference, 'SSH key').id);
  const firewallIds = [...new Set(wanted.firewalls.map(({ firewall }) => firewall))];
  for (const id of firewallIds) {
    if (!state.firewalls.some((firewall) => firewall.id === id)) throw notFound('firewall');
  }
  requireFreeName(project, wanted.name);
  requireRoomInGroup(project, wanted.placement_group ?? null);
  return {
    id: project.takeId(),
    name: wanted.name,
    status: 'initializing',
    createdMs: project.nowMs(),
    serverType: type.name,
    location,
    imageId: image.id,
    sshKeyIds,
    firewalls: firewallIds.map((id) => ({ id, status: 'pending' })),
    placementGroupId: wanted.placement_group ?? null,
    labels: wanted.labels,
    ipv4: wanted.public_net.enable_ipv4 ? allocateIpv4(state.servers) : null,
    ipv6: wanted.public_net.enable_ipv6 ? allocateIpv6(state.servers) : null,
    userData: wanted.user_data,
    process: null,
  };
}

/** The location asked for, or the first that has the type. 422 where it is not offered, 412 where it is sold out. */
function placeFor(project: Project, type: ServerType, reference: string | undefined): string {
  const offers = project.offersOf(type);
  const place =
    reference === undefined ? undefined : byIdOrName(project.catalogue.locations, reference, 'location').name;
  const inPlace = offers.filter((offer) => place === undefined || offer.location === place);
  if (inPlace.length === 0) throw new ApiError(422, 'invalid_input', 'unsupported location for server type');
  const offer = inPlace.find(({ available }) => available);
  if (offer === undefined) throw new ApiError(412, 'resource_unavailable', 'error during placement');
  return offer.location;
}

/** A name means the image of the type's architecture; an id has to be of it. */
function imageFor(project: Project, type: ServerType, reference: string): Image {
  const images = project.catalogue.images.filter(
    ({ id, name, architecture }) =>
      String(id) === reference || (name === reference && architecture === type.architecture),
  );
  const image = images[0];
  if (image === undefined) throw notFound('image');
  if (image.architecture !== type.architecture) {
    throw invalidField('image', `image architecture ${image.architecture} does not match server type ${type.name}`);
  }
  return image;
}

function byIdOrName<Item extends { readonly id: number; readonly name: string }>(
  items: readonly Item[],
  reference: string,
  what: string,
): Item {
  const item = items.find(({ id }) => String(id) === reference) ?? items.find(({ name }) => name === reference);
  if (item === undefined) throw notFound(what);
  return item;
}

/** Throws 409 when another server has the name, also one that is still being deleted. */
export function requireFreeName(project: Project, name: string, except?: Server): void {
  const taken = project.state.servers.some((server) => server.name === name && server.id !== except?.id);
  if (taken) throw notUnique('name', 'server name is already used');
}

function requireRoomInGroup(project: Project, groupId: number | null): void {
  if (groupId === null) return;
  if (!project.state.placementGroups.some(({ id }) => id === groupId)) throw notFound('placement group');
  const members = project.state.servers.filter((server) => server.placementGroupId === groupId).length;
  if (members >= PLACEMENT_GROUP_MEMBERS) {
    throw new ApiError(
      422,
      'placement_group_member_limit_reached',
      `placement group with ID ${groupId} contains already ${PLACEMENT_GROUP_MEMBERS} servers`,
    );
  }
}
