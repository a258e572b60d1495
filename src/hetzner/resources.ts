import * as v from 'valibot';

/*
 * What we read of the provider's resources. Loose on purpose: only the fields in use are required, so that an addition to the API
 * never stops provisioning.
 */

const deprecation = v.looseObject({ announced: v.string(), unavailable_after: v.string() });
const labels = v.record(v.string(), v.string());
const architecture = v.picklist(['x86', 'arm']);

/** A server type. `memory` and `disk` are GB; what a location says about it counts before what the type says of itself. */
export const ServerType = v.looseObject({
  id: v.number(),
  name: v.string(),
  cores: v.number(),
  memory: v.number(),
  disk: v.number(),
  architecture,
  deprecation: v.optional(v.nullable(deprecation), null),
  locations: v.array(
    v.looseObject({
      name: v.string(),
      available: v.optional(v.boolean(), true),
      deprecation: v.optional(v.nullable(deprecation), null),
    }),
  ),
});
export type ServerType = v.InferOutput<typeof ServerType>;

/** A location, such as fsn1. */
export const Location = v.looseObject({ id: v.number(), name: v.string() });
export type Location = v.InferOutput<typeof Location>;

/** An image. Each architecture has one of the same name. `deprecated` is the date since when, or null. */
export const Image = v.looseObject({
  id: v.number(),
  name: v.nullable(v.string()),
  architecture,
  status: v.string(),
  deprecated: v.optional(v.nullable(v.string()), null),
});
export type Image = v.InferOutput<typeof Image>;

/** A public SSH key of the project. */
export const SshKey = v.looseObject({ id: v.number(), name: v.string() });
export type SshKey = v.InferOutput<typeof SshKey>;

/** A placement group and the ids of its servers. */
export const PlacementGroup = v.looseObject({ id: v.number(), name: v.string(), servers: v.array(v.number()) });
export type PlacementGroup = v.InferOutput<typeof PlacementGroup>;

/** A firewall rule as the API gives it back. */
export const FirewallRule = v.looseObject({
  direction: v.picklist(['in', 'out']),
  protocol: v.picklist(['tcp', 'udp', 'icmp', 'esp', 'gre']),
  port: v.optional(v.nullable(v.string()), null),
  source_ips: v.optional(v.array(v.string()), []),
  destination_ips: v.optional(v.array(v.string()), []),
});
export type FirewallRule = v.InferOutput<typeof FirewallRule>;

/** A firewall with all of its rules. */
export const Firewall = v.looseObject({
  id: v.number(),
  name: v.string(),
  labels: v.optional(labels, {}),
  rules: v.array(FirewallRule),
});
export type Firewall = v.InferOutput<typeof Firewall>;

/** An action: something the provider does in the background. */
export const Action = v.looseObject({
  id: v.number(),
  command: v.string(),
  status: v.picklist(['running', 'success', 'error']),
  error: v.optional(v.nullable(v.looseObject({ code: v.string(), message: v.string() })), null),
});
export type Action = v.InferOutput<typeof Action>;

/** A server. `status` stays open text: a status that is new to us is simply not `running`. */
export const Server = v.looseObject({
  id: v.number(),
  name: v.string(),
  status: v.string(),
  labels: labels,
  public_net: v.looseObject({
    ipv4: v.nullable(v.looseObject({ ip: v.string() })),
    ipv6: v.nullable(v.looseObject({ ip: v.string() })),
    firewalls: v.optional(v.array(v.looseObject({ id: v.number(), status: v.string() })), []),
  }),
  private_net: v.optional(v.array(v.looseObject({ ip: v.optional(v.string()) })), []),
  server_type: v.looseObject({ name: v.string() }),
  location: v.looseObject({ name: v.string() }),
  image: v.nullable(v.looseObject({ name: v.nullable(v.string()) })),
});
export type Server = v.InferOutput<typeof Server>;

/** The error document of the API. */
export const ErrorDocument = v.looseObject({
  error: v.looseObject({
    code: v.string(),
    message: v.optional(v.string(), ''),
    details: v.optional(v.unknown()),
  }),
});
