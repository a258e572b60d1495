import { Flags } from '@oclif/core';
import { readSigningKey } from '../../../src/audit/checkpoint-key.ts';
import { recordCheckpoint } from '../../../src/audit/record-checkpoint.ts';
import { signHead } from '../../../src/audit/sign-checkpoint.ts';
import { operatorActor } from '../../connection.ts';
import { EXIT } from '../../exit-code.ts';
import { Failure, usageFailure } from '../../failure.ts';
import { fileProblem } from '../../file-problem.ts';
import { OperatorCommand } from '../../operator-command.ts';

/** `log checkpoint`: signs the head, so that nobody can rewrite what is before it unnoticed. */
export default class LogCheckpoint extends OperatorCommand {
  static override summary = 'Sign where the log ends now, and keep that outside the database.';
  static override description =
    'Writes POSITION.checkpoint.json: epoch, position, hash and time, signed with Ed25519. Signs only what continues the newest checkpoint of this key in the folder. Make the key with `openssl genpkey -algorithm ed25519 -out audit.pem` (mode 0600) and give auditors `openssl pkey -in audit.pem -pubout`. Without a new event since the last checkpoint nothing is signed.';
  static override examples = ['<%= config.bin %> log checkpoint --key audit.pem --output /mnt/worm/checkpoints'];
  static override flags = {
    key: Flags.string({ summary: 'The Ed25519 private key (PEM, mode 0600).', helpValue: 'FILE', required: true }),
    output: Flags.string({ char: 'o', summary: 'The folder for the checkpoint.', helpValue: 'DIR', default: '.' }),
  };

  async run() {
    const { flags } = await this.parse(LogCheckpoint);
    const signing = await readSigningKey(flags.key);
    if (!signing.ok) throw usageFailure(signing.message);
    const { variables } = await this.environment(flags);
    const actor = operatorActor(variables);
    const transactor = await this.transactor(flags);
    const signed = await signHead({
      db: await this.pool(flags),
      key: signing.key,
      directory: flags.output,
      now: Date.now(),
      record: (checkpoint) => recordCheckpoint(transactor, actor, checkpoint),
    }).catch(explainFolder(flags.output));
    if (!signed.ok) throw new Failure(EXIT.refused, signed.code, signed.message);
    const { checkpoint, path, fresh } = signed;
    this.logLines([
      `${fresh ? 'signed' : 'nothing new since'} position ${checkpoint.position}, ${path}, by key ${checkpoint.key_sha256}`,
    ]);
    return { path, fresh, checkpoint };
  }
}

function explainFolder(directory: string) {
  return (error: unknown): never => {
    const problem = fileProblem(error);
    throw problem === undefined ? error : usageFailure(`the folder ${directory} cannot be used (${problem})`);
  };
}
