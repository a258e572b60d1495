import type { CreatedServer, CreateServerRequest, HetznerApi } from './api.ts';
import { AmbiguousCreateError, HetznerError, hasCode } from './errors.ts';
import { NODE_ID_LABEL } from './labels.ts';
import { accepted, type HetznerResult, refused } from './refusal.ts';
import type { Server } from './resources.ts';
import { awaitActions, describeAction, pollUntil, type Waiting } from './waiting.ts';

/** The node's one server, and whether this call made it. */
export interface EnsuredServer {
  readonly how: 'created' | 'adopted';
  readonly server: Server;
}

/** After an unclear create the server may take a moment to be listed. */
const LOOKUP_MS = { pollMs: 1_000, timeoutMs: 4_000 } as const;

/** Looks for the node's server by its label; refuses when there are several, or the one is being deleted. Undefined: there is none. */
export async function findServer(api: HetznerApi, nodeId: string): Promise<HetznerResult<Server> | undefined> {
  const servers = await api.findServersOfNode(nodeId);
  const [server, ...others] = servers.filter((candidate) => candidate.status !== 'deleting');
  const named = servers.map((each) => `${each.name} (${each.id})`).join(', ');
  if (others.length > 0) {
    return refused(
      'server_duplicated',
      `several servers carry the label of node ${nodeId}: ${named}; delete all but one`,
    );
  }
  if (server === undefined) {
    if (servers.length === 0) return undefined;
    return refused('server_being_deleted', `server ${named} is being deleted; try again when it is gone`);
  }
  return accepted(server);
}

/**
 * Makes sure that the node has exactly one server: adopts the one with its label, else creates it in one request and waits for every
 * action that this started. An unclear failure or a taken name leads to a look by label and then by name, and only a server with our
 * label is adopted. `server_create_unresolved` means that nothing was found: asking again later is safe, since names are unique.
 */
export async function findOrCreateServer(
  api: HetznerApi,
  nodeId: string,
  request: CreateServerRequest,
  waiting: Waiting,
): Promise<HetznerResult<EnsuredServer>> {
  const found = await findServer(api, nodeId);
  if (found !== undefined) return found.ok ? accepted({ how: 'adopted', server: found.value }) : found;
  let created: CreatedServer;
  try {
    created = await api.createServer(request);
  } catch (error) {
    if (!isUnclear(error)) return createRefusal(error, request);
    return await lookAgain(api, nodeId, request, error, waiting);
  }
  const followed = await followActions(api, created, waiting);
  return followed.ok ? accepted({ how: 'created', server: followed.value }) : followed;
}

function isUnclear(error: unknown): error is HetznerError {
  return error instanceof AmbiguousCreateError || hasCode(error, 'uniqueness_error', 'conflict');
}

async function lookAgain(
  api: HetznerApi,
  nodeId: string,
  { name }: CreateServerRequest,
  cause: HetznerError,
  waiting: Waiting,
): Promise<HetznerResult<EnsuredServer>> {
  const outcome = await pollUntil<HetznerResult<EnsuredServer>>(
    async () => {
      const labelled = await findServer(api, nodeId);
      if (labelled !== undefined) return labelled.ok ? accepted({ how: 'adopted', server: labelled.value }) : labelled;
      const namesake = await api.findServerByName(name);
      if (namesake === undefined) return undefined;
      if (namesake.labels[NODE_ID_LABEL] === nodeId) return accepted({ how: 'adopted', server: namesake });
      return refused(
        'server_name_taken',
        `the name ${name} is held by server ${namesake.id}, which is not ours; choose another --name`,
      );
    },
    {
      ...waiting,
      pollMs: Math.min(waiting.pollMs, LOOKUP_MS.pollMs),
      timeoutMs: Math.min(waiting.timeoutMs, LOOKUP_MS.timeoutMs),
    },
  );
  return (
    outcome ??
    refused(
      'server_create_unresolved',
      `it is not known whether server ${name} was created (${cause.message}); use --resume`,
    )
  );
}

/** Quota, stock and placement are everyday refusals; anything else 4xx is told in the provider's words. Faults are thrown on. */
function createRefusal(error: unknown, { name, serverType, location }: CreateServerRequest): HetznerResult<never> {
  if (!(error instanceof HetznerError) || error.status === null || error.status === 401 || error.status === 429)
    throw error;
  switch (error.code) {
    case 'resource_limit_exceeded':
      return refused('quota_exceeded', `the project's limit is reached: ${error.message}; ask Hetzner to raise it`);
    case 'resource_unavailable':
      return refused(
        'server_type_unavailable',
        `server type ${serverType} is sold out in ${location}; try another type or location`,
      );
    case 'placement_error':
    case 'placement_group_member_limit_reached':
      return refused('placement_impossible', `server ${name} finds no place in its placement group: ${error.message}`);
    default:
      return refused('server_create_refused', `server ${name} was refused: ${error.message}`);
  }
}

/** A failed start is left to awaitRunning, which powers the server on once; it is `off` and billed, but it exists. */
async function followActions(
  api: HetznerApi,
  { server, actions }: CreatedServer,
  waiting: Waiting,
): Promise<HetznerResult<Server>> {
  const named = `server ${server.name} (${server.id})`;
  const outcome = await awaitActions(api, actions, waiting);
  if (outcome.state === 'pending') {
    const pending = outcome.actions.map(describeAction).join(', ');
    return refused('server_not_running_in_time', `${named} is still busy with ${pending}; use --resume`);
  }
  if (outcome.state === 'failed' && outcome.action.command !== 'start_server') {
    return refused('server_create_failed', `${named} exists, but ${describeAction(outcome.action)}; use --retry`);
  }
  return accepted(server);
}
