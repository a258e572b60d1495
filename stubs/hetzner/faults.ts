import * as v from 'valibot';

const DelayMs = v.optional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(600_000)));
const Headers = v.optional(v.record(v.pipe(v.string(), v.regex(/^[A-Za-z0-9-]+$/)), v.string()));
const ErrorStatus = v.pipe(v.number(), v.integer(), v.minValue(400), v.maxValue(599));
const Code = v.pipe(v.string(), v.regex(/^[a-z0-9_]{1,64}$/));
const Command = v.optional(Code);
const Count = v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)));

const FaultSchema = v.variant('kind', [
  v.strictObject({ kind: v.literal('delay'), delayMs: DelayMs }),
  v.strictObject({ kind: v.literal('headers'), headers: Headers, delayMs: DelayMs }),
  v.strictObject({
    kind: v.literal('status'),
    status: ErrorStatus,
    code: Code,
    message: v.optional(v.string()),
    details: v.optional(v.record(v.string(), v.unknown())),
    headers: Headers,
    delayMs: DelayMs,
  }),
  v.strictObject({ kind: v.literal('drop'), delayMs: DelayMs }),
  v.strictObject({ kind: v.literal('lose_response'), delayMs: DelayMs }),
  v.strictObject({
    kind: v.literal('handle_then_status'),
    status: v.optional(ErrorStatus, 502),
    code: v.optional(Code, 'bad_gateway'),
    headers: Headers,
    delayMs: DelayMs,
  }),
  v.strictObject({
    kind: v.literal('action_error'),
    command: Command,
    code: v.optional(Code, 'action_failed'),
    message: v.optional(v.string(), 'Action failed'),
    delayMs: DelayMs,
  }),
  v.strictObject({ kind: v.literal('never_finishes'), command: Command, delayMs: DelayMs }),
]);

const PlannedFaultSchema = v.pipe(
  v.strictObject({
    match: v.strictObject({
      method: v.optional(v.picklist(['GET', 'POST', 'PUT', 'DELETE'])),
      path: v.pipe(v.string(), v.startsWith('/')),
    }),
    nth: Count,
    from: Count,
    to: Count,
    every: Count,
    fault: FaultSchema,
  }),
  v.check(
    ({ nth, from, to, every }) => nth === undefined || (from ?? to ?? every) === undefined,
    'nth stands alone: from, to and every say it otherwise',
  ),
);

/** A fault plan as JSON: see stubs/hetzner/README.md for what each fault does. */
const FaultPlanSchema = v.pipe(v.array(PlannedFaultSchema), v.maxLength(1000));

/** A fault plan before its defaults are filled in. */
export type FaultPlanInput = v.InferInput<typeof FaultPlanSchema>;
/** What happens to one request. */
export type Fault = v.InferOutput<typeof FaultSchema>;

interface CountedFault {
  readonly planned: v.InferOutput<typeof PlannedFaultSchema>;
  readonly path: RegExp;
  seen: number;
}

/** A plan with its counters. Each entry counts every request that it matches, also those another entry strikes. */
export class FaultPlan {
  #entries: CountedFault[] = [];

  /** Replaces the plan and starts counting at zero. Throws a ValiError on a plan that is not valid. */
  replace(plan: unknown): void {
    this.#entries = v.parse(FaultPlanSchema, plan).map((planned) => ({
      planned,
      path: pathPattern(planned.match.path),
      seen: 0,
    }));
  }

  /** Counts a request and returns the fault of the first entry whose turn it is. */
  strike(method: string, path: string): Fault | undefined {
    const due = this.#entries.filter((entry) => {
      if (entry.planned.match.method !== undefined && entry.planned.match.method !== method) return false;
      if (!entry.path.test(path)) return false;
      entry.seen += 1;
      return isDue(entry);
    });
    return due[0]?.planned.fault;
  }

  /** The plan with the number of requests each entry has matched so far. */
  report(): readonly (v.InferOutput<typeof PlannedFaultSchema> & { readonly seen: number })[] {
    return this.#entries.map(({ planned, seen }) => ({ ...planned, seen }));
  }
}

function isDue({ planned: { nth, from = 1, to = Infinity, every = 1 }, seen }: CountedFault): boolean {
  if (nth !== undefined) return seen === nth;
  return seen >= from && seen <= to && (seen - from) % every === 0;
}

/** `*` stands for one segment of a path, `**` for any number of them. */
function pathPattern(glob: string): RegExp {
  const source = glob
    .split(/(\*\*|\*)/)
    .map((part) => (part === '**' ? '.*' : part === '*' ? '[^/]+' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')))
    .join('');
  return new RegExp(`^${source}$`);
}
