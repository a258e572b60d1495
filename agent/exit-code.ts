/** What the process's exit code says; DESIGN §6. */
export const EXIT = { done: 0, refused: 1, usage: 2, failed: 3 } as const;

/** One of {@link EXIT}. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Wrong usage or configuration: one line for a person, exit 2. */
export class UsageError extends Error {}
