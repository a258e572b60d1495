import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import * as v from 'valibot';
import { ApiError, invalidFields, notFound } from './errors.ts';
import type { ActionFate } from './project.ts';

/** What handlers find in their context: the raw connection, and the fate that the fault plan has for their actions. */
export interface StubEnv {
  Bindings: HttpBindings;
  Variables: { fateOf: (command: string) => ActionFate };
}

/** Reads a JSON body. Throws 400 `json_error` on malformed JSON and 422 `invalid_input` naming every wrong field. */
export async function parseBody<Schema extends v.GenericSchema>(
  c: Context<StubEnv>,
  schema: Schema,
): Promise<v.InferOutput<Schema>> {
  const text = await c.req.text();
  const result = v.safeParse(schema, parseJson(text));
  if (result.success) return result.output;
  const messages = new Map<string, string[]>();
  for (const issue of result.issues) {
    const name = v.getDotPath(issue) ?? '';
    messages.set(name, [...(messages.get(name) ?? []), messageOf(issue)]);
  }
  throw invalidFields([...messages].map(([name, texts]) => ({ name, messages: texts })));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError(400, 'json_error', 'invalid JSON in request');
  }
}

const messageOf = (issue: v.BaseIssue<unknown>): string =>
  issue.received === 'undefined' ? 'Missing data for required field.' : issue.message;

/** Finds the resource that the path names by its id, or throws 404. */
export function byPathId<Item extends { readonly id: number }>(
  c: Context<StubEnv>,
  items: readonly Item[],
  what: string,
  parameter = 'id',
): Item {
  const id = c.req.param(parameter);
  const item = items.find((candidate) => String(candidate.id) === id);
  if (item === undefined) throw notFound(what);
  return item;
}

/** A time of the API: ISO 8601 in whole seconds, UTC. */
export const apiTime = (ms: number): string => new Date(ms).toISOString().replace(/\.\d{3}Z$/, '+00:00');
