import * as v from 'valibot';
import { event } from '../event/definition.ts';
import {
  commandLine,
  count,
  cpuMillis,
  diskGb,
  hostLabel,
  imageReference,
  ipAddress,
  memoryMb,
  port,
  uuid,
} from '../fields.ts';

const onNode = { database_id: uuid, node_id: uuid } as const;

/** Events of stream `database-<id>`. A database never moves: its data is on the disk of its node. */
export const databaseEvents = {
  database_instance_created: event(
    v.strictObject({
      ...onNode,
      name: hostLabel,
      job_id: uuid,
      cpu_millis: cpuMillis,
      memory_mb: memoryMb,
      disk_gb: diskGb,
      image: imageReference,
      command: commandLine,
      timeout_seconds: v.pipe(count, v.minValue(1), v.maxValue(86_400)),
    }),
  ),
  database_instance_ready: event(v.strictObject({ ...onNode, address: ipAddress, port })),
  database_instance_failed: event(
    v.strictObject({ ...onNode, reason: v.picklist(['job_failed', 'attempts_exhausted']) }),
  ),
  database_instance_stranded: event(v.strictObject(onNode)),
  /** An operator gave the data up, or has moved it by hand: nothing is held for it any more. */
  database_instance_released: event(v.strictObject(onNode)),
} as const;
