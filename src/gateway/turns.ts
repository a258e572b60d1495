/**
 * At most `most` at a time; the others wait in line. A pool's one job wakes every waiting node of it: those who wait their turn look
 * again before they ask for it, so that a crowd costs the decision lock no more than a few commands.
 */
export class Turns {
  readonly #most: number;
  readonly #line: (() => void)[] = [];
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Runs when it is its turn; frees the place whatever comes of it. `waited` says whether there was a line. */
  async take<T>(run: (waited: boolean) => Promise<T>): Promise<T> {
    const waited = this.#taken >= this.#most;
    if (waited) await new Promise<void>((resolve) => this.#line.push(resolve));
    else this.#taken += 1;
    try {
      return await run(waited);
    } finally {
      const next = this.#line.shift();
      if (next === undefined) this.#taken -= 1;
      else next();
    }
  }
}
