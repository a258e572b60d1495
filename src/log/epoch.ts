/** The epoch of a log that was never restored (DESIGN §5). It is carried by events, leases and the labels of workloads. */
export const EPOCH = 1;
