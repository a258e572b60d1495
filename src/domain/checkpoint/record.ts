import { append, type Decision } from '../decision.ts';
import type { EventData } from '../event/catalogue.ts';
import { LOG_STREAM } from '../stream.ts';

/** Puts on record that a checkpoint was signed. */
export function recordCheckpoint(signed: EventData<'log_checkpoint_signed'>): Decision {
  return append(LOG_STREAM, { type: 'log_checkpoint_signed', data: signed });
}
