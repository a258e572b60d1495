import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { Failure, usageFailure } from './failure.ts';

/** The text of a file, or of standard input for `-`. Throws a usage failure for what cannot be read, is too long or is not UTF-8. */
export async function readBounded(path: string, maxBytes: number, name: string): Promise<string> {
  const stream: Readable = path === '-' ? process.stdin : createReadStream(path);
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of stream) {
      const buffer = Buffer.from(chunk as Uint8Array);
      bytes += buffer.length;
      if (bytes > maxBytes) throw usageFailure(`${name} ${path} is longer than ${maxBytes} bytes`);
      chunks.push(buffer);
    }
  } catch (error) {
    if (error instanceof Failure || !(error instanceof Error && 'code' in error)) throw error;
    throw usageFailure(`${name} ${path} cannot be read (${String(error.code)})`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw usageFailure(`${name} ${path} is not UTF-8 text`);
  }
}
