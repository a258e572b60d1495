import type { HetznerApi } from './api.ts';
import { type HostCapacity, hostCapacity } from './capacity.ts';
import type { HetznerRefusal, HetznerRefusalCode } from './refusal.ts';
import type { Image, Location, PlacementGroup, ServerType, SshKey } from './resources.ts';
import { successorsOf } from './successors.ts';

/** What an operator asks for, by name (SSH keys also by id). */
export interface PlacementRequest {
  readonly serverType: string;
  readonly location: string;
  readonly image: string;
  readonly sshKeys: readonly string[];
  readonly placementGroup: string | null;
}

/** The same, found at the provider. `capacity` is what jobs may use. */
export interface ResolvedPlacement {
  readonly serverType: string;
  readonly architecture: 'x86' | 'arm';
  readonly location: string;
  readonly imageId: number;
  readonly sshKeyIds: readonly number[];
  readonly placementGroupId: number | null;
  readonly capacity: HostCapacity;
}

/** All that the provider offers and a request is checked against. */
export interface Catalogue {
  readonly serverTypes: readonly ServerType[];
  readonly locations: readonly Location[];
  readonly images: readonly Image[];
  readonly sshKeys: readonly SshKey[];
  readonly placementGroups: readonly PlacementGroup[];
}

/** The placement, or every problem that stands against it, not just the first. */
export type PlacementCheck =
  | { readonly ok: true; readonly value: ResolvedPlacement }
  | { readonly ok: false; readonly refusals: readonly HetznerRefusal[] };

/** Largest number of servers in a spread placement group. Hetzner documentation, "Placement Groups". */
const PLACEMENT_GROUP_MAX_SERVERS = 10;

/**
 * Checks a request against what the provider offers now (`nowMs` decides whether a deprecated type is still to be had). Run it before
 * a create, not before an adoption: a type may be sold out by the node's own server.
 */
export async function validatePlacement(
  api: HetznerApi,
  request: PlacementRequest,
  nowMs: number,
): Promise<PlacementCheck> {
  const [serverTypes, locations, images, sshKeys, placementGroups] = await Promise.all([
    api.listServerTypes(),
    api.listLocations(),
    api.listImages(request.image),
    api.listSshKeys(),
    request.placementGroup === null ? [] : api.listPlacementGroups(),
  ]);
  return checkPlacement(request, { serverTypes, locations, images, sshKeys, placementGroups }, nowMs);
}

/** The pure part of validatePlacement. */
export function checkPlacement(request: PlacementRequest, catalogue: Catalogue, nowMs: number): PlacementCheck {
  const refusals: HetznerRefusal[] = [];
  const refuse = (code: HetznerRefusalCode, message: string) => void refusals.push({ code, message });
  const locationKnown = catalogue.locations.some((location) => location.name === request.location);
  if (!locationKnown) {
    refuse('location_unknown', `there is no location ${request.location}; there are ${names(catalogue.locations)}`);
  }
  const type = catalogue.serverTypes.find((candidate) => candidate.name === request.serverType);
  const trouble = typeTrouble(request, type, locationKnown, catalogue.serverTypes, nowMs);
  if (trouble !== undefined) refusals.push(trouble);
  const capacity = type === undefined ? undefined : hostCapacity(type);
  if (type !== undefined && capacity === undefined) {
    refuse(
      'server_type_too_small',
      `server type ${type.name} leaves nothing after the host reserve of 0.5 vCPU, 1 GiB and 20 GB`,
    );
  }
  const image = pickImage(request.image, type, catalogue.images, refuse);
  const sshKeyIds = pickSshKeys(request.sshKeys, catalogue.sshKeys, refuse);
  const placementGroupId = pickPlacementGroup(request.placementGroup, catalogue.placementGroups, refuse);
  if (refusals.length > 0 || type === undefined || capacity === undefined || image === undefined)
    return { ok: false, refusals };
  const { architecture } = type;
  const value = {
    serverType: type.name,
    architecture,
    location: request.location,
    imageId: image.id,
    sshKeyIds,
    placementGroupId,
    capacity,
  };
  return { ok: true, value };
}

function typeTrouble(
  { serverType, location }: PlacementRequest,
  type: ServerType | undefined,
  locationKnown: boolean,
  types: readonly ServerType[],
  nowMs: number,
): HetznerRefusal | undefined {
  const successors = successorsOf(serverType, types, location);
  const advice = successors.length === 0 ? '' : `; use ${successors.join(' or ')}`;
  if (type === undefined)
    return { code: 'server_type_gone', message: `server type ${serverType} does not exist (any more)${advice}` };
  if (!locationKnown) return undefined;
  const offer = type.locations.find((candidate) => candidate.name === location);
  if (offer === undefined) {
    const elsewhere = type.locations.length === 0 ? 'nowhere' : `in ${names(type.locations)}`;
    return {
      code: 'server_type_not_in_location',
      message: `server type ${serverType} is not offered in ${location}, but ${elsewhere}${advice}`,
    };
  }
  const deprecation = offer.deprecation ?? type.deprecation;
  if (deprecation !== null) {
    const end = deprecation.unavailable_after;
    return Date.parse(end) <= nowMs
      ? {
          code: 'server_type_gone',
          message: `server type ${serverType} was withdrawn from ${location} on ${end}${advice}`,
        }
      : {
          code: 'server_type_deprecated',
          message: `server type ${serverType} is deprecated in ${location} and ends on ${end}${advice}`,
        };
  }
  if (!offer.available)
    return {
      code: 'server_type_unavailable',
      message: `server type ${serverType} is sold out in ${location} at the moment`,
    };
  return undefined;
}

type Refuse = (code: HetznerRefusalCode, message: string) => void;

function pickImage(
  name: string,
  type: ServerType | undefined,
  images: readonly Image[],
  refuse: Refuse,
): Image | undefined {
  const named = images.filter((image) => image.name === name && image.status === 'available');
  if (named.length === 0) {
    refuse('image_unknown', `there is no image ${name}`);
    return undefined;
  }
  if (type === undefined) return undefined;
  const fitting = named.find((image) => image.architecture === type.architecture);
  if (fitting === undefined) {
    refuse(
      'image_architecture_mismatch',
      `image ${name} is not made for ${type.architecture}, the architecture of ${type.name}`,
    );
  } else if (fitting.deprecated !== null) {
    refuse('image_deprecated', `image ${name} is deprecated since ${fitting.deprecated}`);
  }
  return fitting;
}

function pickSshKeys(wanted: readonly string[], keys: readonly SshKey[], refuse: Refuse): readonly number[] {
  if (wanted.length === 0)
    refuse('ssh_key_missing', 'no SSH key is given: nobody could log in to attach the data volume');
  const found = wanted.map((key) => keys.find((candidate) => candidate.name === key || String(candidate.id) === key));
  const unknown = wanted.filter((_, index) => found[index] === undefined);
  if (unknown.length > 0) refuse('ssh_key_unknown', `the project has no SSH key ${unknown.join(', ')}`);
  return found.flatMap((key) => (key === undefined ? [] : [key.id]));
}

function pickPlacementGroup(wanted: string | null, groups: readonly PlacementGroup[], refuse: Refuse): number | null {
  if (wanted === null) return null;
  const group = groups.find((candidate) => candidate.name === wanted);
  if (group === undefined) {
    refuse('placement_group_unknown', `the project has no placement group ${wanted}`);
  } else if (group.servers.length >= PLACEMENT_GROUP_MAX_SERVERS) {
    refuse('placement_group_full', `placement group ${wanted} holds ${group.servers.length} servers, the most it can`);
  }
  return group?.id ?? null;
}

function names(things: readonly { readonly name: string }[]): string {
  return things.map((thing) => thing.name).join(', ');
}
