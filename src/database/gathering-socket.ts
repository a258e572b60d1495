import { Socket } from 'node:net';

type Written = (error?: Error | null) => void;

/**
 * A socket that gathers what is written in one turn of the event loop and sends it at the turn's end, so that a flight of pipelined
 * statements is one system call and the server is woken once, not per statement.
 */
export class GatheringSocket extends Socket {
  #gathering = false;

  override write(chunk: Uint8Array | string, callback?: Written): boolean;
  override write(chunk: Uint8Array | string, encoding?: BufferEncoding, callback?: Written): boolean;
  override write(chunk: Uint8Array | string, how?: BufferEncoding | Written, callback?: Written): boolean {
    if (!this.#gathering) {
      this.#gathering = true;
      this.cork();
      process.nextTick(() => {
        this.#gathering = false;
        this.uncork();
      });
    }
    return typeof how === 'function' ? super.write(chunk, how) : super.write(chunk, how, callback);
  }
}
