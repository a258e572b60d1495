interface Waiting<I, O> {
  readonly input: I;
  readonly resolve: (output: O) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Answers whoever asks at the same time with one read. One read is under way at a time; those who come meanwhile gather for the next
 * and never join it, so that no answer is older than its question. A lone question waits for nobody.
 */
export class SharedRead<I, O> {
  readonly #read: (inputs: readonly I[]) => Promise<readonly O[]>;
  #waiting: Waiting<I, O>[] = [];
  #busy = false;

  /** `read` answers in the order of its inputs. */
  constructor(read: (inputs: readonly I[]) => Promise<readonly O[]>) {
    this.#read = read;
  }

  /** Rejects with what the read threw. */
  ask(input: I): Promise<O> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ input, resolve, reject });
      if (this.#busy) return;
      this.#busy = true;
      // What arrives in the same turn of the event loop still comes along.
      setImmediate(() => void this.#run());
    });
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        const outputs = await this.#read(batch.map(({ input }) => input));
        for (const [i, { resolve }] of batch.entries()) resolve(outputs[i] as O);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#busy = false;
  }
}
