import { expect, test } from 'vitest';
import { uuid } from '../../src/domain/fields.ts';
import { InstanceId, JobId, NodeId, RequestId } from '../../src/protocol/identifiers.ts';

test.each([
  ['node', NodeId],
  ['job', JobId],
  ['request', RequestId],
  ['instance', InstanceId],
])('the id of a %s: of the same grammar as in events', (_, id) =>
  expect(id.pipe[1].requirement).toEqual(uuid.pipe[1].requirement),
);
