import { ProcessRuntime } from '../../../../agent/runtime/process/process-runtime.ts';
import { diskFs, type StateFs } from '../../../../agent/state-fs.ts';
import { systemTime } from '../../../../agent/time.ts';
import { NODE_ID, workload } from '../support/workloads.ts';

const [stateDir = '', method = '', cutBefore = '', ...command] = process.argv.slice(2);

let steps = 0;

/** The agent dies like a process that is killed -9: before the step, and with all of its file descriptors. */
const step = (): void => {
  steps += 1;
  if (steps === Number(cutBefore)) process.kill(process.pid, 'SIGKILL');
};

const cutFs: StateFs = {
  ...diskFs,
  makeDir: (path) => (step(), diskFs.makeDir(path)),
  writeSynced: (path, text) => (step(), diskFs.writeSynced(path, text)),
  rename: (from, to) => (step(), diskFs.rename(from, to)),
  remove: (path) => (step(), diskFs.remove(path)),
  syncDir: (path) => (step(), diskFs.syncDir(path)),
};

/** Does one method of the runtime whole, or up to the step before which it is cut off; says how many steps there were. */
const runtime = new ProcessRuntime({
  stateDir,
  nodeId: NODE_ID,
  address: async () => '127.0.0.1',
  time: systemTime,
  fs: cutFs,
});
const spec = workload(command, { listens: false });
const signal = new AbortController().signal;
if (method === 'ensure') await runtime.ensure(spec, signal);
else await runtime.remove(spec, 5_000, signal);
console.log(steps);
