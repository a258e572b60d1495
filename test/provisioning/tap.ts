/** Where a run is to be cut: at the n-th operation of its trace, before it has its effect or before its answer is heard. */
export interface Cut {
  readonly at: number;
  readonly when: 'before' | 'after';
}

/** Every effect of a run goes through a tap: it keeps the trace, and it can be the moment in which the process dies. */
export class Tap {
  readonly trace: string[] = [];
  readonly #cut: Cut | undefined;
  readonly #death = new AbortController();

  constructor(cut?: Cut) {
    this.#cut = cut;
  }

  /** Aborts when the process is dead. Nothing gets through the tap from then on. */
  get signal(): AbortSignal {
    return this.#death.signal;
  }

  /** Carries out one operation. A dead process neither begins one nor hears of the end of one. */
  async through<T>(label: string, effect: () => Promise<T>): Promise<T> {
    this.#death.signal.throwIfAborted();
    const index = this.trace.push(label) - 1;
    if (this.#isCut(index, 'before')) this.#die();
    try {
      return await effect();
    } finally {
      if (this.#isCut(index, 'after')) this.#die();
      this.#death.signal.throwIfAborted();
    }
  }

  #isCut(index: number, when: Cut['when']): boolean {
    return this.#cut?.at === index && this.#cut.when === when;
  }

  #die(): never {
    this.#death.abort(new Error('the process is dead'));
    this.#death.signal.throwIfAborted();
    throw new Error('unreachable');
  }
}
