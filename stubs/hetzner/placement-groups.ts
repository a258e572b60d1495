import { Hono } from 'hono';
import * as v from 'valibot';
import { named } from './catalogue.ts';
import { ApiError, notUnique } from './errors.ts';
import { apiTime, byPathId, parseBody, type StubEnv } from './http.ts';
import { LabelsSchema, parseLabelSelector } from './labels.ts';
import { listResponse } from './paging.ts';
import type { Project } from './project.ts';
import type { PlacementGroup } from './state.ts';

const CreatePlacementGroupSchema = v.object({
  name: v.pipe(v.string(), v.minLength(1, 'is too short')),
  type: v.literal('spread'),
  labels: v.nullish(LabelsSchema, {}),
});

/** /placement_groups: list, create, get, delete (422 `resource_in_use` while it has members). */
export function placementGroupRoutes(project: Project): Hono<StubEnv> {
  return new Hono<StubEnv>()
    .get('/', (c) => {
      const selected = parseLabelSelector(c.req.query('label_selector'));
      const groups = named(project.state.placementGroups, c.req.query('name')).filter(({ labels }) => selected(labels));
      return listResponse(c, 'placement_groups', groups, (group) => placementGroupView(project, group));
    })
    .post('/', async (c) => {
      const { name, labels } = await parseBody(c, CreatePlacementGroupSchema);
      if (project.state.placementGroups.some((group) => group.name === name)) {
        throw notUnique('name', 'placement group name is already used');
      }
      const group = { id: project.takeId(), name, labels, createdMs: project.nowMs() };
      project.state.placementGroups.push(group);
      return c.json({ placement_group: placementGroupView(project, group), action: null }, 201);
    })
    .get('/:id', (c) => {
      const group = byPathId(c, project.state.placementGroups, 'placement group');
      return c.json({ placement_group: placementGroupView(project, group) });
    })
    .delete('/:id', (c) => {
      const gone = byPathId(c, project.state.placementGroups, 'placement group');
      if (memberIds(project, gone).length > 0) {
        throw new ApiError(422, 'resource_in_use', 'placement group still contains servers');
      }
      project.state.placementGroups = project.state.placementGroups.filter(({ id }) => id !== gone.id);
      return c.body(null, 204);
    });
}

const memberIds = (project: Project, group: PlacementGroup): number[] =>
  project.state.servers.filter(({ placementGroupId }) => placementGroupId === group.id).map(({ id }) => id);

/** A placement group as the API shows it. */
export function placementGroupView(project: Project, group: PlacementGroup): object {
  const { id, name, labels, createdMs } = group;
  return { id, name, labels, type: 'spread', created: apiTime(createdMs), servers: memberIds(project, group) };
}
