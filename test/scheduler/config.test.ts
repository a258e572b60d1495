import { expect, test } from 'vitest';
import { readSchedulerConfig } from '../../src/scheduler/config.ts';

const SHORT = { PUSHLEFT_NODE_UNHEALTHY_AFTER: '1.5', PUSHLEFT_NODE_LOST_AFTER_SECONDS: '4' };

test.for([
  ['none set: 90 s and 300 s', {}, { unhealthyAfterMs: 90_000, lostAfterMs: 300_000 }],
  [
    'the shortest of a real fleet',
    { PUSHLEFT_NODE_UNHEALTHY_AFTER: '25', PUSHLEFT_NODE_LOST_AFTER_SECONDS: '30' },
    { unhealthyAfterMs: 25_000, lostAfterMs: 30_000 },
  ],
  [
    'unhealthy before an agent that is well has asked again',
    { PUSHLEFT_NODE_UNHEALTHY_AFTER: '24.9' },
    'PUSHLEFT_NODE_UNHEALTHY_AFTER: is shorter than 25 s',
  ],
  [
    'lost before 30 s',
    { PUSHLEFT_NODE_UNHEALTHY_AFTER: '25', PUSHLEFT_NODE_LOST_AFTER_SECONDS: '29.9' },
    'PUSHLEFT_NODE_LOST_AFTER_SECONDS: is shorter than 30 s',
  ],
  [
    'lost before unhealthy',
    { PUSHLEFT_NODE_LOST_AFTER_SECONDS: '60' },
    'PUSHLEFT_NODE_LOST_AFTER_SECONDS: is shorter than PUSHLEFT_NODE_UNHEALTHY_AFTER',
  ],
  ['short ones', SHORT, 'PUSHLEFT_NODE_UNHEALTHY_AFTER: is shorter than 25 s'],
  [
    'short ones that are allowed',
    { ...SHORT, PUSHLEFT_ALLOW_SHORT_THRESHOLDS: '1' },
    { unhealthyAfterMs: 1_500, lostAfterMs: 4_000 },
  ],
] as const)('thresholds of silence, %s', ([, env, expected]) => {
  const read = readSchedulerConfig({ DATABASE_URL: 'postgres://x', ...env }, '0.0.0');
  expect(read.ok ? read.config.silence : read.message).toEqual(expected);
});
