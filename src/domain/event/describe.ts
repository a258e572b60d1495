import * as v from 'valibot';
import { caEvents } from '../ca/events.ts';
import { certificateEvents } from '../certificate/events.ts';
import { checkpointEvents } from '../checkpoint/events.ts';
import { databaseEvents } from '../database/events.ts';
import { deploymentEvents } from '../deployment/events.ts';
import { ingressEvents } from '../ingress/events.ts';
import { jobEvents } from '../job/events.ts';
import { nodeEvents } from '../node/events.ts';
import { fleetWideEvents, poolEvents } from '../pool/events.ts';
import { CA_STREAM, FLEET_STREAM, LOG_STREAM } from '../stream.ts';
import { catalogue, EVENT_TYPES, type EventType } from './catalogue.ts';
import { meanings } from './meanings.ts';

/** The entities of the catalogue: the heading of each and the stream of its events. */
const ENTITIES = [
  { title: 'Nodes', stream: 'node-<node_id>', events: nodeEvents },
  { title: 'Certificates', stream: 'node-<node_id>', events: certificateEvents },
  { title: 'Certificate authority', stream: CA_STREAM, events: caEvents },
  { title: 'Jobs', stream: 'job-<job_id>', events: jobEvents },
  { title: 'Pools', stream: 'pool-<pool>', events: poolEvents },
  { title: 'Fleet', stream: FLEET_STREAM, events: fleetWideEvents },
  { title: 'Deployments', stream: 'deployment-<deployment_id>', events: deploymentEvents },
  { title: 'Ingress routes', stream: 'deployment-<deployment_id>', events: ingressEvents },
  { title: 'Databases', stream: 'database-<database_id>', events: databaseEvents },
  { title: 'Log', stream: LOG_STREAM, events: checkpointEvents },
] as const;

/** The catalogue as Markdown: each event's meaning, who may append it (by database role) and its fields, from the schemas. */
export function describeEvents(appenders: Readonly<Record<EventType, readonly string[]>>): string {
  const sections = ENTITIES.map(({ title, stream, events }) => {
    const types = EVENT_TYPES.filter((type) => Object.hasOwn(events, type));
    const described = types.map((type) => describeEvent(type, appenders[type]));
    return [`## ${title}`, `Stream \`${stream}\`.`, ...described].join('\n\n');
  });
  return `${sections.join('\n\n')}\n`;
}

function describeEvent(type: EventType, roles: readonly string[]): string {
  const { version, data } = catalogue[type];
  const fields = Object.entries<v.GenericSchema>(data.entries).map(
    ([name, schema]) => `| \`${name}\` | ${describeField(schema)} |`,
  );
  return [
    `### \`${type}\``,
    '',
    meanings[type],
    '',
    `Version ${version}, appended by ${roles.map((role) => `\`${role}\``).join(' or ')}.`,
    '',
    '| field | holds |',
    '| --- | --- |',
    ...fields,
  ].join('\n');
}

/** The kinds of schema that fields are made of; another one has to be described here first. */
export type FieldSchema =
  | v.NullableSchema<v.GenericSchema, undefined>
  | v.ArraySchema<v.GenericSchema, undefined>
  | v.StrictObjectSchema<Readonly<Record<string, v.GenericSchema>>, undefined>
  | v.PicklistSchema<readonly string[], undefined>
  | v.LiteralSchema<string, undefined>
  | v.BooleanSchema<undefined>
  | v.StringSchema<undefined>
  | v.NumberSchema<undefined>;

function describeField(field: v.GenericSchema): string {
  const schema = field as FieldSchema;
  switch (schema.type) {
    case 'nullable':
      return `${describeField(schema.wrapped)}, or null`;
    case 'array':
      return `list: ${describeField(schema.item)}`;
    case 'strict_object': {
      const entries = Object.entries<v.GenericSchema>(schema.entries);
      return entries.map(([name, entry]) => `\`${name}\` (${describeField(entry)})`).join(', ');
    }
    case 'picklist':
      return schema.options.map((option) => `\`${option}\``).join(' or ');
    case 'literal':
      return `\`${schema.literal}\``;
    case 'boolean':
      return 'true or false';
    case 'string':
    case 'number': {
      const description = v.getDescription(schema);
      if (description === undefined) throw new Error(`a field of type ${schema.type} has no description`);
      return description;
    }
  }
  throw new Error(`fields of type ${field.type} cannot be described`);
}
