import { expect, test } from 'vitest';
import { eventsDocument, eventsFile } from '../../docs/generate-events.ts';
import { EVENT_TYPES } from '../../src/domain/event/catalogue.ts';

test('docs/events.md is what the schemas say (else run `npm run docs:events`)', () =>
  expect(eventsFile()).toBe(eventsDocument()));

test('docs/events.md describes every event type once, in the order of the catalogue', () =>
  expect([...eventsFile().matchAll(/^### `(\w+)`$/gm)].map(([, type]) => type)).toEqual(EVENT_TYPES));
