import { type Context, Hono } from 'hono';
import * as v from 'valibot';
import { actionView } from './actions.ts';
import { named } from './catalogue.ts';
import { locked } from './errors.ts';
import { byPathId, parseBody, type StubEnv } from './http.ts';
import { LabelsSchema, parseLabelSelector } from './labels.ts';
import { listResponse } from './paging.ts';
import type { Project } from './project.ts';
import { createServer, requireFreeName, ServerNameSchema } from './server-create.ts';
import { serverView } from './server-view.ts';
import type { Command, Server } from './state.ts';

const UpdateServerSchema = v.object({ name: v.optional(ServerNameSchema), labels: v.optional(LabelsSchema) });

/** The command of the action that each power route starts, and the status the server has meanwhile. */
const POWER_ACTIONS: Readonly<Record<string, { command: Command; meanwhile?: Server['status'] }>> = {
  poweron: { command: 'start_server', meanwhile: 'starting' },
  poweroff: { command: 'stop_server', meanwhile: 'stopping' },
  shutdown: { command: 'shutdown_server', meanwhile: 'stopping' },
  reboot: { command: 'reboot_server' },
  reset: { command: 'reset_server' },
};

/** /servers: list, create, get, rename and relabel, delete, and the power actions. */
export function serverRoutes(project: Project): Hono<StubEnv> {
  const routes = new Hono<StubEnv>()
    .get('/', (c) => listServers(c, project))
    .post('/', (c) => createServer(c, project))
    .get('/:id', (c) => c.json({ server: serverView(project, serverOf(c, project)) }))
    .put('/:id', async (c) => {
      const server = serverOf(c, project);
      const { name, labels } = await parseBody(c, UpdateServerSchema);
      if (name !== undefined) requireFreeName(project, name, server);
      server.name = name ?? server.name;
      server.labels = labels ?? server.labels;
      return c.json({ server: serverView(project, server) });
    })
    .delete('/:id', (c) => {
      const action = command(c, project, 'delete_server', 'deleting', (server) => project.machines.powerOff(server));
      return c.json({ action });
    });
  for (const [route, { command: name, meanwhile }] of Object.entries(POWER_ACTIONS)) {
    routes.post(`/:id/actions/${route}`, (c) => c.json({ action: command(c, project, name, meanwhile) }, 201));
  }
  return routes;
}

const serverOf = (c: Context<StubEnv>, project: Project): Server => byPathId(c, project.state.servers, 'server');

function listServers(c: Context<StubEnv>, project: Project): Response {
  const selected = parseLabelSelector(c.req.query('label_selector'));
  const statuses = c.req.queries('status');
  const servers = named(project.state.servers, c.req.query('name')).filter(
    (server) => selected(server.labels) && (statuses === undefined || statuses.includes(server.status)),
  );
  return listResponse(c, 'servers', servers, (server) => serverView(project, server));
}

/** Starts an action on the server of the path. Throws 423 while another one runs on it, a deletion included. */
function command(
  c: Context<StubEnv>,
  project: Project,
  name: Command,
  meanwhile?: Server['status'],
  atOnce?: (server: Server) => void,
): object {
  const server = serverOf(c, project);
  if (project.isLocked('server', server.id)) throw locked();
  if (meanwhile !== undefined && !(name === 'start_server' && server.status === 'running')) server.status = meanwhile;
  atOnce?.(server);
  const resources = [{ id: server.id, type: 'server' as const }];
  return actionView(project, project.startAction({ command: name, resources, fate: c.var.fateOf(name) }));
}
