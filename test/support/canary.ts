import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pool } from 'pg';

/** How a secret was written where it should not be. `base64` covers the URL-safe alphabet too. */
export type Form = 'plain' | 'base64' | 'hex';

/** A secret that was found: its name (never itself), how it was written, and where. */
export interface Sighting {
  readonly secret: string;
  readonly form: Form;
  readonly place: string;
}

interface Needle {
  readonly secret: string;
  readonly form: Form;
  readonly bytes: Buffer;
}

/** Below this many bytes, what is searched for could turn up by chance. */
const SHORTEST = 16;

/**
 * Looks for secrets that a run planted, in all forms in which they would leak: as they are, in hex of both cases (also with colons
 * between the bytes), and as base64 of anything that contains them, whatever comes before them, also when wrapped into lines. Of a
 * secret of several lines (a key in PEM) each line counts.
 */
export class CanaryScanner {
  readonly #needles: readonly Needle[];

  /** Secrets by the names that sightings call them by. Throws for one too short to be told from chance. */
  constructor(secrets: Readonly<Record<string, string | Buffer>>) {
    this.#needles = Object.entries(secrets).flatMap(([name, secret]) =>
      partsOf(Buffer.from(secret), name).flatMap((part) => needlesOf(name, part)),
    );
  }

  /** Scans text or bytes. */
  scan(content: string | Buffer, place: string): Sighting[] {
    const written = Buffer.from(content);
    const unwrapped = withoutBreaks(written);
    const found = this.#needles.filter(({ bytes }) => written.includes(bytes) || unwrapped.includes(bytes));
    return distinct(found.map(({ secret, form }) => ({ secret, form, place })));
  }

  /** Scans the content and the name of a file. */
  async scanFile(path: string): Promise<Sighting[]> {
    return distinct([...this.scan(path, path), ...this.scan(await readFile(path), path)]);
  }

  /** Scans every regular file under a folder, but those that `skip` names by their path. Links are not followed. */
  async scanDirectory(folder: string, skip: (path: string) => boolean = () => false): Promise<Sighting[]> {
    const sightings: Sighting[] = [];
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (entry.isFile() && !skip(path)) sightings.push(...(await this.scanFile(path)));
    }
    return sightings;
  }

  /** Scans every column of every table that can hold text or bytes, in all schemas but PostgreSQL's own. */
  async scanDatabase(pool: Pool): Promise<Sighting[]> {
    const sightings: Sighting[] = [];
    for (const { table, column, bytes } of await columnsOf(pool)) {
      const place = `${table}.${column}`;
      const selected = bytes ? column : `${column}::text`;
      const { rows } = await pool.query<{ value: string | Buffer }>(
        `SELECT ${selected} AS value FROM ${table} WHERE ${column} IS NOT NULL`,
      );
      for (const { value } of rows) sightings.push(...this.scan(value, place));
    }
    return distinct(sightings);
  }
}

/** The whole secret, and each of its lines when there are several. */
function partsOf(secret: Buffer, name: string): Buffer[] {
  const lines = secret.toString('latin1').trim().split(/\r?\n/);
  const telling = lines.filter((line) => line.length >= SHORTEST && !line.startsWith('-----'));
  const parts = lines.length > 1 ? [secret, ...telling.map((line) => Buffer.from(line, 'latin1'))] : [secret];
  if (parts.some(({ length }) => length < SHORTEST)) throw new Error(`${name} is shorter than ${SHORTEST} bytes`);
  return parts;
}

function needlesOf(secret: string, part: Buffer): Needle[] {
  const hex = part.toString('hex');
  const base64 = [0, 1, 2].map((before) => base64Inside(part, before));
  const texts: [Form, string][] = [
    ['hex', hex],
    ['hex', hex.toUpperCase()],
    ...base64.flatMap((text): [Form, string][] => [
      ['base64', text],
      ['base64', text.replaceAll('+', '-').replaceAll('/', '_')],
    ]),
  ];
  return [
    { secret, form: 'plain', bytes: part },
    ...texts.map(([form, text]) => ({ secret, form, bytes: Buffer.from(text) })),
  ];
}

/** The characters of base64 that depend on the secret alone, when `before` bytes precede it in its group of three. */
function base64Inside(secret: Buffer, before: number): string {
  const encoded = Buffer.concat([Buffer.alloc(before), secret]).toString('base64');
  const first = Math.ceil((before * 8) / 6);
  const last = Math.floor(((before + secret.length) * 8) / 6);
  return encoded.slice(first, last);
}

/** Line breaks, also escaped as in JSON, and what stands between the bytes of `openssl x509 -fingerprint`. */
function withoutBreaks(written: Buffer): Buffer {
  return Buffer.from(written.toString('latin1').replaceAll(/[\s:]|\\[nr]/g, ''), 'latin1');
}

function distinct(sightings: readonly Sighting[]): Sighting[] {
  return [...new Map(sightings.map((sighting) => [JSON.stringify(sighting), sighting])).values()];
}

interface ScannedColumn {
  readonly table: string;
  readonly column: string;
  readonly bytes: boolean;
}

/** Type categories: string, user-defined (bytea, json, jsonb, xml, uuid), array, composite, enum, unknown. */
async function columnsOf(pool: Pool): Promise<ScannedColumn[]> {
  const { rows } = await pool.query<ScannedColumn>(`
    SELECT a.attrelid::regclass::text AS table, quote_ident(a.attname) AS column, a.atttypid = 'bytea'::regtype AS bytes
    FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid
    JOIN pg_type t ON t.oid = a.atttypid
    WHERE c.relkind IN ('r', 'p', 'm') AND a.attnum > 0 AND NOT a.attisdropped
      AND t.typcategory IN ('S', 'U', 'A', 'C', 'E', 'X')
      AND c.relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
    ORDER BY 1, 2`);
  return rows;
}
