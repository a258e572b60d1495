import { createPublicKey, type KeyObject } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { EventData } from '../domain/event/catalogue.ts';
import {
  type Checkpoint,
  checkpointText,
  type Head,
  keySha256,
  readCheckpoint,
  signCheckpoint,
} from '../log/checkpoint.ts';
import { readEnvelope, unseal } from '../log/codec.ts';
import { type Queryable, readHead, readRows, rowPages } from '../log/postgres/reader.ts';
import { type ChainPoint, GENESIS, proveRows } from '../log/prove.ts';
import { writeFileAtomic } from '../pki/atomic-file.ts';

const SUFFIX = '.checkpoint.json';
const FILE = /^[1-9]\d{0,15}\.checkpoint\.json$/;
const PUBLIC = 0o644;
/** Several keys may sign in turn, each time after the other's event; more of them in a row are taken for news. */
const TRAILING = 32;

/** With what the head is signed, and where the checkpoint goes: a folder outside the database, which has to be there. */
export interface Signing {
  readonly db: Queryable;
  readonly key: KeyObject;
  readonly directory: string;
  /** ms */
  readonly now: number;
  /** Puts on record that a checkpoint was signed. */
  readonly record: (signed: EventData<'log_checkpoint_signed'>) => Promise<unknown>;
}

/** The checkpoint of the log's head and its file. `fresh` is false when there was nothing to sign since the last one. */
export interface SignedHead {
  readonly ok: true;
  readonly checkpoint: Checkpoint;
  readonly path: string;
  readonly fresh: boolean;
}

/** Why nothing was signed, with one line for people. */
export interface SigningRefusal {
  readonly ok: false;
  readonly code: 'log_empty' | 'log_rewritten' | 'checkpoint_in_the_way';
  readonly message: string;
}

/**
 * Signs the head of the log into `<position>.checkpoint.json`. Only what continues the newest checkpoint that this key signed into the
 * folder is signed, proved event by event since then; without one, from the first event. A head that is nothing but a checkpoint's own
 * event has not moved. Safe to repeat and to cut anywhere: the file is written before the event. Throws what file system and database say.
 */
export async function signHead(signing: Signing): Promise<SignedHead | SigningRefusal> {
  const { db, key, directory, now, record } = signing;
  const publicKey = createPublicKey(key);
  const head = await headToSign(db, keySha256(publicKey));
  if (head === undefined) return refuse('log_empty', 'the log has no event to vouch for');

  const last = await newestCheckpoint(directory, publicKey);
  const fault = await continues(db, last ?? GENESIS, head);
  if (fault !== undefined) return refuse('log_rewritten', `${fault}; nothing was signed: run \`log verify\``);

  const path = join(directory, `${head.position}${SUFFIX}`);
  const there = last?.position === head.position ? last : undefined;
  if (there === undefined && (await exists(path))) {
    return refuse('checkpoint_in_the_way', `${path} is there already and no checkpoint by this key`);
  }
  const checkpoint = there ?? signCheckpoint(head, now, key);
  if (there === undefined) await writeFileAtomic(path, checkpointText(checkpoint), PUBLIC);
  if (!head.recorded) await record(recordOf(checkpoint));
  return { ok: true, checkpoint, path, fresh: there === undefined };
}

function recordOf({ position, hash, key_sha256, signed_at }: Checkpoint): EventData<'log_checkpoint_signed'> {
  return { position, hash, key_sha256, signed_at: Date.parse(signed_at) };
}

/** The log's end, but for events that tell of checkpoints alone; `recorded` when this key's own is among those. */
async function headToSign(db: Queryable, key: string): Promise<(Head & { recorded: boolean }) | undefined> {
  const { position } = await readHead(db);
  const rows = await readRows(db, { after: Math.max(0, position - TRAILING), limit: TRAILING });
  const trailing = rows.length - 1 - rows.findLastIndex(({ type }) => type !== 'log_checkpoint_signed');
  const own = rows.slice(rows.length - trailing).flatMap((row) => {
    const event = unseal(row.position, row.body);
    return event.type === 'log_checkpoint_signed' && event.data.key_sha256 === key ? [event.data] : [];
  });
  const signed = own.findLast((data) => data.position >= position - trailing);
  const end = rows.find((row) => row.position === signed?.position) ?? rows.at(-1);
  if (end === undefined) return undefined;
  const { epoch } = readEnvelope(end.position, end.body).metadata;
  return { epoch, position: end.position, hash: end.hash, recorded: end.position === signed?.position };
}

/** One line when the log between two points is not a continuation of the first. */
async function continues(db: Queryable, last: ChainPoint, head: ChainPoint): Promise<string | undefined> {
  if (head.position < last.position) return `the log ends before the checkpoint at position ${last.position}`;
  const { fault } = await proveRows(rowPages(db, last.position, head.position), last, { checkpoints: [head] });
  if (fault === undefined || fault.reason === 'newer_program') return undefined;
  const since =
    last.position === 0 ? '' : `, or what is before it is not what the checkpoint at ${last.position} vouches for`;
  return `position ${fault.position}: ${fault.reason.replaceAll('_', ' ')}${since}`;
}

/** The checkpoint of the highest position in the folder that this key signed. Others' and broken ones vouch for nothing here. */
async function newestCheckpoint(directory: string, publicKey: KeyObject): Promise<Checkpoint | undefined> {
  const names = (await readdir(directory)).filter((name) => FILE.test(name));
  const newestFirst = names.toSorted((a, b) => Number.parseInt(b, 10) - Number.parseInt(a, 10));
  for (const name of newestFirst) {
    const read = readCheckpoint(await readFile(join(directory, name), 'utf8'), publicKey);
    if (typeof read !== 'string' && name === `${read.position}${SUFFIX}`) return read;
  }
  return undefined;
}

async function exists(path: string): Promise<boolean> {
  return (await readFile(path).catch(ignoreMissing)) !== undefined;
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
  return undefined;
}

function refuse(code: SigningRefusal['code'], message: string): SigningRefusal {
  return { ok: false, code, message };
}
