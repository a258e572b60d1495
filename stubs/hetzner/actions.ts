import { type Context, Hono } from 'hono';
import { ApiError, notFound } from './errors.ts';
import { apiTime, byPathId, type StubEnv } from './http.ts';
import { listResponse } from './paging.ts';
import { concerns, type Project } from './project.ts';
import type { Action } from './state.ts';

const LISTING_REMOVED =
  'https://docs.hetzner.cloud/changelog#2025-01-30-listing-arbitrary-actions-in-the-actions-list-endpoint-is-removed';

/** GET /actions?id=… (other listings answer 410) and GET /actions/:id. */
export function actionRoutes(project: Project): Hono<StubEnv> {
  return new Hono<StubEnv>()
    .get('/', (c) => {
      const ids = c.req.queries('id');
      if (ids === undefined) {
        throw new ApiError(410, 'deprecated_api_endpoint', 'listing all actions was removed: name them by id', {
          announcement: LISTING_REMOVED,
        });
      }
      return listActions(c, project, (action) => ids.includes(String(action.id)));
    })
    .get('/:id', (c) => c.json({ action: actionView(project, byPathId(c, project.state.actions, 'action')) }));
}

/** The action routes that each kind of resource has: of all, one of all, of one resource, one of one resource. */
export function resourceActionRoutes(project: Project, type: 'server' | 'firewall'): Hono<StubEnv> {
  const known = (id: number): boolean =>
    (type === 'server' ? project.state.servers : project.state.firewalls).some((resource) => resource.id === id);
  const isOfType = (action: Action): boolean => action.resources.some((resource) => resource.type === type);
  return new Hono<StubEnv>()
    .get('/actions', (c) => listActions(c, project, isOfType))
    .get('/actions/:id', (c) => {
      const action = byPathId(c, project.state.actions.filter(isOfType), 'action');
      return c.json({ action: actionView(project, action) });
    })
    .get('/:id/actions', (c) => {
      const id = Number(c.req.param('id'));
      if (!known(id)) throw notFound(type);
      return listActions(c, project, (action) => concerns(action, type, id));
    })
    .get('/:id/actions/:action_id', (c) => {
      const id = Number(c.req.param('id'));
      const mine = project.state.actions.filter((action) => concerns(action, type, id));
      return c.json({ action: actionView(project, byPathId(c, mine, 'action', 'action_id')) });
    });
}

function listActions(c: Context<StubEnv>, project: Project, wanted: (action: Action) => boolean): Response {
  const statuses = c.req.queries('status');
  const actions = project.state.actions.filter(
    (action) => wanted(action) && (statuses === undefined || statuses.includes(action.status)),
  );
  return listResponse(c, 'actions', actions, (action) => actionView(project, action));
}

/** An action as the API shows it. Progress is the share of its time that has passed, below 100 while it runs. */
export function actionView(project: Project, action: Action): object {
  const running = action.status === 'running';
  return {
    id: action.id,
    command: action.command,
    status: action.status,
    progress: running ? progress(action, project.nowMs()) : 100,
    started: apiTime(action.startedMs),
    finished: action.finishedMs === null ? null : apiTime(action.finishedMs),
    resources: action.resources,
    error: running ? null : action.error,
  };
}

function progress({ startedMs, dueMs }: Action, nowMs: number): number {
  if (dueMs === null || dueMs <= startedMs) return 0;
  return Math.max(0, Math.min(99, Math.floor((100 * (nowMs - startedMs)) / (dueMs - startedMs))));
}
