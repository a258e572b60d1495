import type { SshKey } from './state.ts';

/** Where servers can stand. */
interface Location {
  readonly id: number;
  readonly name: string;
  readonly description: string;
  readonly country: string;
  readonly city: string;
  readonly latitude: number;
  readonly longitude: number;
  readonly network_zone: string;
}

/** What a location offers of a server type. Past `unavailable_after` (ISO time) it offers nothing and is not listed. */
interface TypeOffer {
  readonly location: string;
  readonly available: boolean;
  readonly deprecation: { readonly announced: string; readonly unavailable_after: string } | null;
}

/** A kind of machine; memory and disk in GB. */
export interface ServerType {
  readonly id: number;
  readonly name: string;
  readonly cores: number;
  readonly memory: number;
  readonly disk: number;
  readonly architecture: 'x86' | 'arm';
  readonly cpu_type: 'shared' | 'dedicated';
  readonly category: string;
  readonly offers: readonly TypeOffer[];
}

/** A system image. One name exists once an architecture; `deprecated` is an ISO time or null. */
export interface Image {
  readonly id: number;
  readonly name: string;
  readonly description: string;
  readonly os_flavor: string;
  readonly os_version: string;
  readonly architecture: 'x86' | 'arm';
  readonly deprecated: string | null;
}

/** What does not change while the stub runs. */
export interface Catalogue {
  readonly locations: readonly Location[];
  readonly serverTypes: readonly ServerType[];
  readonly images: readonly Image[];
}

/** Changes to the standard catalogue: pairs that are sold out, and pairs that are on their way out (ISO times). */
export interface CatalogueChanges {
  readonly soldOut?: readonly { readonly serverType: string; readonly location: string }[];
  readonly deprecated?: readonly {
    readonly serverType: string;
    readonly location: string;
    readonly announced: string;
    readonly unavailableAfter: string;
  }[];
}

const LOCATIONS: readonly Location[] = [
  location(1, 'fsn1', 'Falkenstein DC Park 1', 'DE', 'Falkenstein', 50.47612, 12.370071, 'eu-central'),
  location(2, 'nbg1', 'Nuremberg DC Park 1', 'DE', 'Nuremberg', 49.452102, 11.076665, 'eu-central'),
  location(3, 'hel1', 'Helsinki DC Park 1', 'FI', 'Helsinki', 60.169855, 24.938379, 'eu-central'),
  location(4, 'ash', 'Ashburn, VA', 'US', 'Ashburn, VA', 39.045821, -77.487073, 'us-east'),
  location(5, 'hil', 'Hillsboro, OR', 'US', 'Hillsboro, OR', 45.54222, -122.951924, 'us-west'),
  location(6, 'sin', 'Singapore', 'SG', 'Singapore', 1.283333, 103.833333, 'ap-southeast'),
];

const EUROPE = ['fsn1', 'nbg1', 'hel1'];
const OVERSEAS = ['ash', 'hil', 'sin'];

const SERVER_TYPES: readonly ServerType[] = [
  serverType(114, 'cx23', 2, 4, 40, EUROPE),
  serverType(115, 'cx33', 4, 8, 80, EUROPE),
  serverType(116, 'cx43', 8, 16, 160, EUROPE),
  serverType(117, 'cx53', 16, 32, 320, EUROPE),
  serverType(22, 'cpx11', 2, 2, 40, OVERSEAS),
  serverType(23, 'cpx21', 3, 4, 80, OVERSEAS),
  serverType(24, 'cpx31', 4, 8, 160, OVERSEAS),
  serverType(108, 'cpx22', 2, 4, 80, EUROPE),
  serverType(109, 'cpx32', 4, 8, 160, EUROPE),
  serverType(45, 'cax11', 2, 4, 40, EUROPE),
  serverType(93, 'cax21', 4, 8, 80, EUROPE),
  serverType(94, 'cax31', 8, 16, 160, EUROPE),
  serverType(96, 'ccx13', 2, 8, 80, [...EUROPE, ...OVERSEAS]),
  serverType(97, 'ccx23', 4, 16, 160, [...EUROPE, ...OVERSEAS]),
  serverType(98, 'ccx33', 8, 32, 240, [...EUROPE, ...OVERSEAS]),
];

const IMAGES: readonly Image[] = [
  image(15512617, 'ubuntu-20.04', 'x86', '2025-05-31T00:00:00Z'),
  image(103907373, 'ubuntu-20.04', 'arm', '2025-05-31T00:00:00Z'),
  image(114690387, 'debian-12', 'x86', null),
  image(114690389, 'debian-12', 'arm', null),
  image(161547269, 'ubuntu-24.04', 'x86', null),
  image(161547270, 'ubuntu-24.04', 'arm', null),
];

/** The one SSH key of a new project. Nobody has its private half. */
export const OPERATOR_SSH_KEY: Pick<SshKey, 'name' | 'publicKey'> = {
  name: 'operator',
  publicKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB3vLgJ5mdGKkPXQHPYx0BQ6ChzTnEbxmvTXL9Yx1K7f operator@example.org',
};

/** The standard catalogue with `changes` applied. Throws when a change names a pair that the catalogue does not have. */
export function catalogueWith(changes: CatalogueChanges = {}): Catalogue {
  let serverTypes = SERVER_TYPES;
  for (const { serverType: type, location: place } of changes.soldOut ?? []) {
    serverTypes = changeOffer(serverTypes, type, place, { available: false });
  }
  for (const { serverType: type, location: place, announced, unavailableAfter } of changes.deprecated ?? []) {
    const deprecation = { announced, unavailable_after: unavailableAfter };
    serverTypes = changeOffer(serverTypes, type, place, { deprecation });
  }
  return { locations: LOCATIONS, serverTypes, images: IMAGES };
}

function changeOffer(
  serverTypes: readonly ServerType[],
  typeName: string,
  place: string,
  change: Partial<TypeOffer>,
): readonly ServerType[] {
  const known = serverTypes.find((type) => type.name === typeName)?.offers.some((offer) => offer.location === place);
  if (known !== true) throw new RangeError(`the catalogue has no ${typeName} in ${place}`);
  return serverTypes.map((type) =>
    type.name === typeName
      ? { ...type, offers: type.offers.map((offer) => (offer.location === place ? { ...offer, ...change } : offer)) }
      : type,
  );
}

function location(
  id: number,
  name: string,
  description: string,
  country: string,
  city: string,
  latitude: number,
  longitude: number,
  network_zone: string,
): Location {
  return { id, name, description, country, city, latitude, longitude, network_zone };
}

function serverType(
  id: number,
  name: string,
  cores: number,
  memory: number,
  disk: number,
  places: readonly string[],
): ServerType {
  const dedicated = name.startsWith('ccx');
  return {
    id,
    name,
    cores,
    memory,
    disk,
    architecture: name.startsWith('cax') ? 'arm' : 'x86',
    cpu_type: dedicated ? 'dedicated' : 'shared',
    category: dedicated ? 'General Purpose' : name.startsWith('cpx') ? 'Regular Performance' : 'Cost-Optimized',
    offers: places.map((place) => ({ location: place, available: true, deprecation: null })),
  };
}

function image(id: number, name: string, architecture: 'x86' | 'arm', deprecated: string | null): Image {
  const [flavor = '', version = ''] = name.split('-');
  const description = `${flavor.slice(0, 1).toUpperCase()}${flavor.slice(1)} ${version}`;
  return { id, name, description, os_flavor: flavor, os_version: version, architecture, deprecated };
}
