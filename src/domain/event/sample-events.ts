import type * as v from 'valibot';
import { catalogue, type EventType } from './catalogue.ts';
import type { FieldSchema } from './describe.ts';
import type { RecordedEvent } from './recorded.ts';

/**
 * Made-up events of one type, from its schema: one, then one more for each other value that a field may have where there are few (null,
 * a boolean, an option). A field of one name holds the same value in every type, so all are about the same node, job and certificate.
 * For telling what folds do, not for a log: texts are names, not ids.
 */
export function sampleEvents(type: EventType, position: number): RecordedEvent[] {
  const fields = Object.entries<v.GenericSchema>(catalogue[type].data.entries);
  const values = fields.map(([name, schema]) => [name, samples(name, schema)] as const);
  const first = Object.fromEntries(values.map(([name, [value]]) => [name, value]));
  const others = values.flatMap(([name, [, ...rest]]) => rest.map((value) => ({ ...first, [name]: value })));
  return [first, ...others].map((data) => ({ ...recording(position), type, data }) as RecordedEvent);
}

function recording(position: number) {
  return {
    position,
    stream: 'stream',
    at: position * 1_000,
    metadata: {
      actor: { kind: 'operator', id: 'actor', database_user: 'user', client_address: null },
      command_id: 'command',
      correlation_id: 'correlation',
      program_version: 'version',
      epoch: 1,
    },
  };
}

function samples(name: string, field: v.GenericSchema): readonly unknown[] {
  const schema = field as FieldSchema;
  switch (schema.type) {
    case 'nullable':
      return [...samples(name, schema.wrapped), null];
    case 'array':
      // The ids of a list are called as one is, and more.
      return [samples(name.replace(/s$/, ''), schema.item)];
    case 'strict_object':
      return [
        Object.fromEntries(Object.entries(schema.entries).map(([part, entry]) => [part, samples(part, entry)[0]])),
      ];
    case 'picklist':
      return schema.options;
    case 'literal':
      return [schema.literal];
    case 'boolean':
      return [false, true];
    case 'string':
      return [name];
    case 'number':
      return [numberOf(name)];
  }
  throw new Error(`fields of type ${field.type} have no sample`);
}

/** A number that is another one for each field's name. */
function numberOf(name: string): number {
  return Array.from(name, (letter) => letter.charCodeAt(0)).reduce((sum, code) => (sum * 31 + code) % 1_000_003, 7);
}
