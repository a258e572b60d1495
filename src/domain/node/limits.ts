// What one node may have at most. A node that will not come back is told of by one event that names everything it had, and what follows
// from that is decided with it: both have to stay within what the log takes (src/log/codec.ts).

/** Jobs that wait for the node or are being done there. */
export const MOST_OPEN_JOBS = 400;
/** Jobs of its pool that it holds at once. An agent does one after the other; those that its earlier lives left run out. */
export const MOST_HELD_JOBS = 64;
/** Instances that have a place on it. */
export const MOST_INSTANCES = 256;
/** Databases on it. */
export const MOST_DATABASES = 64;
