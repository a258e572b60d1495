import { Hono } from 'hono';
import { invalidField } from './errors.ts';
import { byPathId, type StubEnv } from './http.ts';
import { listResponse } from './paging.ts';
import type { Project } from './project.ts';
import type { Image, ServerType } from './seeds.ts';

/** GET /locations and /locations/:id. */
export function locationRoutes(project: Project): Hono<StubEnv> {
  const { locations } = project.catalogue;
  return new Hono<StubEnv>()
    .get('/', (c) => listResponse(c, 'locations', named(locations, c.req.query('name')), (location) => location))
    .get('/:id', (c) => c.json({ location: byPathId(c, locations, 'location') }));
}

/** GET /server_types and /server_types/:id. A type that no location offers any more is not there. */
export function serverTypeRoutes(project: Project): Hono<StubEnv> {
  return new Hono<StubEnv>()
    .get('/', (c) =>
      listResponse(c, 'server_types', named(listedTypes(project), c.req.query('name')), (type) =>
        serverTypeView(project, type),
      ),
    )
    .get('/:id', (c) =>
      c.json({ server_type: serverTypeView(project, byPathId(c, listedTypes(project), 'server type')) }),
    );
}

/** GET /images (by name, type, status, architecture; deprecated ones with include_deprecated=true) and /images/:id. */
export function imageRoutes(project: Project): Hono<StubEnv> {
  return new Hono<StubEnv>()
    .get('/', (c) => {
      const architectures = c.req.queries('architecture');
      const wanted = (queried: string[] | undefined, value: string) => queried === undefined || queried.includes(value);
      const images = named(project.catalogue.images, c.req.query('name')).filter(
        (image) =>
          (image.deprecated === null || c.req.query('include_deprecated') === 'true') &&
          wanted(architectures, image.architecture) &&
          wanted(c.req.queries('type'), 'system') &&
          wanted(c.req.queries('status'), 'available') &&
          c.req.query('bound_to') === undefined,
      );
      if (architectures?.some((name) => name !== 'x86' && name !== 'arm') === true) {
        throw invalidField('architecture', 'must be x86 or arm');
      }
      return listResponse(c, 'images', images, imageView);
    })
    .get('/:id', (c) => c.json({ image: imageView(byPathId(c, project.catalogue.images, 'image')) }));
}

/** Those with that name, or all when none is asked for. */
export const named = <Item extends { readonly name: string }>(
  items: readonly Item[],
  name: string | undefined,
): readonly Item[] => (name === undefined ? items : items.filter((item) => item.name === name));

/** The types that at least one location still offers. */
export const listedTypes = (project: Project): ServerType[] =>
  project.catalogue.serverTypes.filter((type) => project.offersOf(type).length > 0);

/** A server type as the API shows it, with what each location offers of it now. It carries no prices. */
export function serverTypeView(project: Project, type: ServerType): object {
  const { offers: _, ...facts } = type;
  const offers = project.offersOf(type);
  const deprecation = offers.every((offer) => offer.deprecation !== null) ? (offers[0]?.deprecation ?? null) : null;
  return {
    ...facts,
    description: type.name.toUpperCase(),
    storage_type: 'local',
    deprecated: deprecation !== null,
    deprecation,
    prices: [],
    locations: offers.map(({ location, available, deprecation: leaving }) => ({
      id: project.catalogue.locations.find(({ name }) => name === location)?.id,
      name: location,
      available,
      recommended: available && leaving === null,
      deprecation: leaving,
    })),
  };
}

/** An image as the API shows it. */
export const imageView = (image: Image): object => ({
  ...image,
  type: 'system',
  status: 'available',
  image_size: null,
  disk_size: 5,
  created: '2024-04-25T13:26:27+00:00',
  created_from: null,
  bound_to: null,
  rapid_deploy: true,
  protection: { delete: false },
  deleted: null,
  labels: {},
});
