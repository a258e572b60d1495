import { Flags } from '@oclif/core';
import { listDatabases } from '../../../../src/read/databases.ts';
import { namesOf } from '../../../../src/read/workloads.ts';
import { atFlag } from '../../../arguments.ts';
import { OperatorCommand } from '../../../operator-command.ts';
import { databaseJson } from '../../../output/database.ts';
import { moment, orDash } from '../../../output/format.ts';
import { momentJson, pastLines } from '../../../output/moment-line.ts';
import { disk, memory } from '../../../output/node.ts';
import { tableLines } from '../../../output/table.ts';

/** `workload database list`: one line a database. */
export default class WorkloadDatabaseList extends OperatorCommand {
  static override summary = 'List databases: status, node, address, size.';
  static override examples = [
    '<%= config.bin %> workload database list',
    '<%= config.bin %> workload database list --all --at 1h --json',
  ];
  static override flags = { at: atFlag, all: Flags.boolean({ summary: 'Those that were released as well.' }) };

  async run() {
    const { flags } = await this.parse(WorkloadDatabaseList);
    const { databases, names, shown, live } = await this.view(flags, async (view) => ({
      databases: await listDatabases(view, flags.all),
      names: namesOf(await view.nodes({})),
      shown: view.moment,
      live: view.telemetry !== null,
    }));
    const lines = tableLines(databases, [
      { heading: 'NAME', value: ({ name }) => name },
      { heading: 'STATUS', value: ({ status }) => status },
      { heading: 'NODE', value: ({ node_id }) => names.get(node_id) ?? node_id },
      { heading: 'ADDRESS', value: ({ address, port }) => (address === null ? '-' : `${address}:${orDash(port)}`) },
      { heading: 'MEMORY', value: ({ memory_mb }) => memory(memory_mb), alignRight: true },
      { heading: 'DISK', value: ({ disk_gb }) => disk(disk_gb), alignRight: true },
      { heading: 'CREATED', value: ({ created_at }) => moment(created_at) },
    ]);
    this.logLines([...(databases.length === 0 ? ['no databases'] : lines), ...pastLines(shown, live)]);
    return { ...momentJson(shown), databases: databases.map(databaseJson) };
  }
}
