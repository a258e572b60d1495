/**
 * The key of the one advisory lock under which the fleet is decided ("PLFT"). Whoever holds it sees the projection exactly as the log
 * tells it.
 */
export const DECISION_LOCK = 0x504c4654;

/** The session lock that makes one scheduler replica the leader: a pair of keys, so that it cannot meet {@link DECISION_LOCK}. */
export const LEADER_LOCK = [0x504c4654, 1] as const;

/** Under it the tables that rebuilds have replaced are dropped. */
export const REPLACED_TABLES_LOCK = [0x504c4654, 2] as const;
