/** What an instance is: a slot of a role, filled for the n-th time. */
export interface InstanceName {
  readonly deployment_id: string;
  readonly role: string;
  readonly slot: number;
  readonly generation: number;
}

/**
 * The id of an instance. It follows from what the instance is, so two schedulers that ask for the same replacement ask for one.
 * Slots count from 0, generations from 1.
 */
export function instanceIdOf({ deployment_id, role, slot, generation }: InstanceName): string {
  return `${deployment_id}.${role}.${slot}.${generation}`;
}

/** The id of the instance that follows in the slot. */
export function nextInstanceId({ generation, ...slot }: InstanceName): string {
  return instanceIdOf({ ...slot, generation: generation + 1 });
}
