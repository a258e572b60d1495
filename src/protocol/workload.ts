import * as v from 'valibot';
import { boundedInteger } from './text.ts';

/** Most words of a workload's command line. */
const COMMAND_MAX_WORDS = 32;

/** A reference to an image: registry, path, tag or digest (the grammar of docker's references, bounded). The process runtime ignores it. */
export const ImageReference = v.pipe(
  v.string(),
  v.maxLength(255),
  v.regex(/^[a-z0-9]+(?:[._:/-]+[a-zA-Z0-9_]+)*(?:@sha256:[0-9a-f]{64})?$/),
);

/**
 * What is run, word by word, never through a shell. Printable ASCII. It is no place for secrets: it can be read in the log and in every
 * process listing of the host.
 */
export const CommandLine = v.pipe(
  v.array(v.pipe(v.string(), v.regex(/^[\x20-\x7e]{1,512}$/))),
  v.minLength(1),
  v.maxLength(COMMAND_MAX_WORDS),
);

/** What a workload may use of its host. */
export const Limits = {
  cpu_millis: boundedInteger(1, 1_024_000),
  memory_mb: boundedInteger(1, 16_777_216),
} as const;

/** The generation of an instance or a route: later ones replace earlier ones. */
export const Generation = boundedInteger(1, 999_999);

/** The epoch of the log that a workload was started in: it changes when the log was restored. */
export const Epoch = boundedInteger(1, Number.MAX_SAFE_INTEGER);

/** Where a workload can be reached: an IP address of its host, and a port. */
export const Endpoint = { address: v.pipe(v.string(), v.ip()), port: boundedInteger(1, 65_535) } as const;

/** An absolute path of HTTP that answers 2xx or 3xx once the workload is ready. */
export const ReadinessPath = v.pipe(v.string(), v.regex(/^\/[\x21-\x7e]{0,255}$/));
