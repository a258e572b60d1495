import { type Context, Hono } from 'hono';
import * as v from 'valibot';
import { actionView } from './actions.ts';
import { named } from './catalogue.ts';
import { ApiError, notUnique } from './errors.ts';
import { RulesSchema } from './firewall-rules.ts';
import { firewallView } from './firewall-view.ts';
import { byPathId, parseBody, type StubEnv } from './http.ts';
import { LabelsSchema, parseLabelSelector } from './labels.ts';
import { listResponse } from './paging.ts';
import type { Project } from './project.ts';
import type { Action, Command, Firewall, Server } from './state.ts';

const NameSchema = v.pipe(v.string(), v.minLength(1, 'is too short'), v.maxLength(128, 'is too long'));
const ResourcesSchema = v.array(
  v.variant('type', [
    v.object({ type: v.literal('server'), server: v.object({ id: v.pipe(v.number(), v.integer()) }) }),
    v.object({ type: v.literal('label_selector'), label_selector: v.object({ selector: v.string() }) }),
  ]),
);
const CreateFirewallSchema = v.object({
  name: NameSchema,
  labels: v.nullish(LabelsSchema, {}),
  rules: v.nullish(RulesSchema, []),
  apply_to: v.nullish(ResourcesSchema, []),
});
const UpdateFirewallSchema = v.object({ name: v.optional(NameSchema), labels: v.optional(LabelsSchema) });

type Resources = v.InferOutput<typeof ResourcesSchema>;

/** /firewalls: list, create, get, rename and relabel, delete, set_rules, and which servers they stand before. */
export function firewallRoutes(project: Project): Hono<StubEnv> {
  const answerActions = (c: Context<StubEnv>, actions: readonly Action[]) =>
    c.json({ actions: actions.map((action) => actionView(project, action)) }, 201);
  return new Hono<StubEnv>()
    .get('/', (c) => {
      const selected = parseLabelSelector(c.req.query('label_selector'));
      const firewalls = named(project.state.firewalls, c.req.query('name')).filter(({ labels }) => selected(labels));
      return listResponse(c, 'firewalls', firewalls, (firewall) => firewallView(project, firewall));
    })
    .post('/', (c) => createFirewall(c, project))
    .get('/:id', (c) => c.json({ firewall: firewallView(project, firewallOf(c, project)) }))
    .put('/:id', (c) => updateFirewall(c, project))
    .delete('/:id', (c) => {
      const firewall = firewallOf(c, project);
      if (project.serversBehind(firewall).length > 0 || firewall.selectors.length > 0) {
        throw new ApiError(422, 'resource_in_use', 'firewall still applied to a resource');
      }
      project.state.firewalls = project.state.firewalls.filter(({ id }) => id !== firewall.id);
      return c.body(null, 204);
    })
    .post('/:id/actions/set_rules', async (c) => {
      const firewall = firewallOf(c, project);
      const { rules } = await parseBody(c, v.object({ rules: RulesSchema }));
      firewall.rules = rules;
      return answerActions(c, [
        firewallAction(c, project, 'set_firewall_rules', firewall),
        ...project.serversBehind(firewall).map((server) => applyTo(c, project, firewall, server)),
      ]);
    })
    .post('/:id/actions/apply_to_resources', async (c) => {
      const firewall = firewallOf(c, project);
      const { apply_to } = await parseBody(c, v.object({ apply_to: ResourcesSchema }));
      return answerActions(c, applyToResources(c, project, firewall, apply_to));
    })
    .post('/:id/actions/remove_from_resources', async (c) => {
      const firewall = firewallOf(c, project);
      const { remove_from } = await parseBody(c, v.object({ remove_from: ResourcesSchema }));
      return answerActions(c, removeFromResources(c, project, firewall, remove_from));
    });
}

const firewallOf = (c: Context<StubEnv>, project: Project): Firewall =>
  byPathId(c, project.state.firewalls, 'firewall');

async function createFirewall(c: Context<StubEnv>, project: Project): Promise<Response> {
  const { name, labels, rules, apply_to } = await parseBody(c, CreateFirewallSchema);
  requireFreeName(project, name);
  for (const resource of apply_to) checkResource(project, resource, 422);
  const firewall: Firewall = { id: project.takeId(), name, createdMs: project.nowMs(), labels, rules, selectors: [] };
  project.state.firewalls.push(firewall);
  const actions = [
    firewallAction(c, project, 'set_firewall_rules', firewall),
    ...applyToResources(c, project, firewall, apply_to),
  ].map((action) => actionView(project, action));
  return c.json({ firewall: firewallView(project, firewall), actions }, 201);
}

async function updateFirewall(c: Context<StubEnv>, project: Project): Promise<Response> {
  const firewall = firewallOf(c, project);
  const { name, labels } = await parseBody(c, UpdateFirewallSchema);
  if (project.isLocked('firewall', firewall.id)) {
    throw new ApiError(409, 'conflict', 'the firewall is being changed, please retry');
  }
  if (name !== undefined) requireFreeName(project, name, firewall);
  firewall.name = name ?? firewall.name;
  firewall.labels = labels ?? firewall.labels;
  return c.json({ firewall: firewallView(project, firewall) });
}

function requireFreeName(project: Project, name: string, except?: Firewall): void {
  const taken = project.state.firewalls.some((other) => other.name === name && other.id !== except?.id);
  if (taken) throw notUnique('name', 'firewall name is already used');
}

/** The server that a resource names, or undefined for a label selector. Throws when either cannot be. */
function checkResource(project: Project, resource: Resources[number], status: 404 | 422): Server | undefined {
  if (resource.type === 'label_selector') {
    parseLabelSelector(resource.label_selector.selector);
    return undefined;
  }
  const server = project.state.servers.find(({ id }) => id === resource.server.id);
  if (server === undefined) throw new ApiError(status, 'firewall_resource_not_found', 'server not found');
  if (server.ipv4 === null && server.ipv6 === null) {
    throw new ApiError(422, 'private_net_only_server', 'the server has no public interface');
  }
  return server;
}

function applyToResources(c: Context<StubEnv>, project: Project, firewall: Firewall, resources: Resources): Action[] {
  for (const resource of resources) {
    const server = checkResource(project, resource, 404);
    if (server?.firewalls.some(({ id }) => id === firewall.id) === true) {
      throw new ApiError(422, 'firewall_already_applied', 'firewall is already applied to the resource');
    }
  }
  return resources.map((resource) => {
    const server = checkResource(project, resource, 404);
    if (server !== undefined) return applyTo(c, project, firewall, server);
    if (resource.type === 'label_selector') firewall.selectors.push(resource.label_selector.selector);
    return firewallAction(c, project, 'apply_firewall', firewall);
  });
}

function removeFromResources(
  c: Context<StubEnv>,
  project: Project,
  firewall: Firewall,
  resources: Resources,
): Action[] {
  for (const resource of resources) {
    const server = checkResource(project, resource, 404);
    const applied =
      resource.type === 'label_selector'
        ? firewall.selectors.includes(resource.label_selector.selector)
        : server?.firewalls.some(({ id }) => id === firewall.id);
    if (applied !== true)
      throw new ApiError(422, 'firewall_already_removed', 'firewall is not applied to the resource');
  }
  return resources.map((resource) => {
    if (resource.type === 'label_selector') {
      firewall.selectors = firewall.selectors.filter((selector) => selector !== resource.label_selector.selector);
    }
    return firewallAction(c, project, 'remove_firewall', firewall, checkResource(project, resource, 404));
  });
}

/** The firewall is `pending` before the server until the action has succeeded. */
function applyTo(c: Context<StubEnv>, project: Project, firewall: Firewall, server: Server): Action {
  server.firewalls = [
    ...server.firewalls.filter(({ id }) => id !== firewall.id),
    { id: firewall.id, status: 'pending' },
  ];
  return firewallAction(c, project, 'apply_firewall', firewall, server);
}

function firewallAction(
  c: Context<StubEnv>,
  project: Project,
  command: Command,
  firewall: Firewall,
  server?: Server,
): Action {
  const resources: Action['resources'] = [{ id: firewall.id, type: 'firewall' }];
  if (server !== undefined) resources.push({ id: server.id, type: 'server' });
  return project.startAction({ command, resources, fate: c.var.fateOf(command) });
}
