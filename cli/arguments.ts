import { Args, Flags } from '@oclif/core';
import { POOLS } from '../src/domain/fields.ts';
import { MOMENT_FORMS } from '../src/read/moment.ts';
import { usageFailure } from './failure.ts';

/** A name or id: what a host label or a UUID may hold, so that nothing else reaches a query, a terminal or a message. */
const REFERENCE = /^[a-z0-9](?:[a-z0-9-]{0,62})$/;

async function parseReference(input: string): Promise<string> {
  if (!REFERENCE.test(input))
    throw usageFailure('a node, job or deployment is named by lower-case letters, digits and hyphens');
  return input;
}

const node = {
  description: "The node's name, its id, or at least 4 characters of the id's beginning.",
  ignoreStdin: true,
  parse: parseReference,
};

/** NODE: a name, an id, or the beginning of an id. */
export const nodeArgument = Args.string({ ...node, required: true });

/** NODE where all nodes are meant without one. */
export const optionalNodeArgument = Args.string(node);

/** NODE…: any number of nodes, none included. */
export const nodesArgument = Args.string({ ...node, multiple: true });

/** JOB: an id, or the beginning of one. */
export const jobArgument = Args.string({
  description: "The job's id, or at least 4 characters of its beginning.",
  required: true,
  ignoreStdin: true,
  parse: parseReference,
});

/** DEPLOYMENT: its name or its id. */
export const deploymentArgument = Args.string({
  description: "The deployment's name or id.",
  required: true,
  ignoreStdin: true,
  parse: parseReference,
});

/** DATABASE: its name or its id. */
export const databaseArgument = Args.string({
  description: "The database's name or id.",
  required: true,
  ignoreStdin: true,
  parse: parseReference,
});

/** --at: time travel. */
export const atFlag = Flags.string({ summary: `Show the past: ${MOMENT_FORMS}.`, helpValue: 'MOMENT' });

/** --pool. */
export const poolFlag = Flags.option({ options: POOLS, summary: 'Only this pool.' })();

/** --node as a filter or target. */
export const nodeFlag = Flags.string({ summary: "A node's name or id.", helpValue: 'NODE', parse: parseReference });

/** A serial number or fingerprint in hex, of either case and with or without the colons of openssl; answers plain lower-case digits. */
export function hexDigits(input: string): string {
  const digits = input.replaceAll(':', '').toLowerCase();
  if (!/^[0-9a-f]{4,64}$/.test(digits)) throw usageFailure('a certificate is named by 4 to 64 hex digits');
  return digits;
}

/** --limit, from 1 to `max`. */
export function limitFlag(preset: number, max: number) {
  return Flags.integer({ summary: `Show at most this many.`, default: preset, min: 1, max });
}
