import type { ServerType } from './resources.ts';

/** cx22 -> family cx, size 2 (the first digit), generation 2 (the second). Hetzner names its types so since cx22. */
function partsOf(name: string) {
  const match = /^([a-z]+)(\d)(\d)$/.exec(name);
  return match === null ? undefined : { family: match[1], size: match[2], generation: Number(match[3]) };
}

/**
 * Names of the types that follow a gone or deprecated one: same family and size, later generation, offered and not deprecated in the
 * location; newest first. Empty when there is none or the name tells no generation.
 */
export function successorsOf(name: string, types: readonly ServerType[], location: string): readonly string[] {
  const old = partsOf(name);
  if (old === undefined) return [];
  return types
    .flatMap((type) => {
      const parts = partsOf(type.name);
      if (
        parts === undefined ||
        parts.family !== old.family ||
        parts.size !== old.size ||
        parts.generation <= old.generation
      )
        return [];
      return isCurrent(type, location) ? [{ name: type.name, generation: parts.generation }] : [];
    })
    .sort((a, b) => b.generation - a.generation)
    .map(({ name }) => name);
}

function isCurrent(type: ServerType, location: string): boolean {
  const offer = type.locations.find((candidate) => candidate.name === location);
  return offer !== undefined && offer.deprecation === null && type.deprecation === null;
}
