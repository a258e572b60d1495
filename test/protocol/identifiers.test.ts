import { expect, test } from 'vitest';
import { instanceId, uuid } from '../../src/domain/fields.ts';
import { DatabaseId, DeploymentId, InstanceId, JobId, NodeId, RequestId } from '../../src/protocol/identifiers.ts';

test.each([
  ['node', NodeId],
  ['job', JobId],
  ['request', RequestId],
  ['deployment', DeploymentId],
  ['database', DatabaseId],
])('the id of a %s: of the same grammar as in events', (_, id) =>
  expect(id.pipe[1].requirement).toEqual(uuid.pipe[1].requirement),
);

test('the id of an instance: of the same grammar as in events', () =>
  expect(InstanceId.pipe[1].requirement).toEqual(instanceId.pipe[1].requirement));
