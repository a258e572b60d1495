import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setPriority } from 'node:os';
import { identifyProcess, type ProcessIdentity } from './process-identity.ts';

/** Programs are looked for here when the agent itself was given no PATH. */
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** Workloads are served after the agent, which has to keep their leases. */
const NICENESS = 5;
/**
 * RLIMIT_DATA counts what a process has mapped to write, touched or not: a Node.js that uses 48 MB has 577 MB of it (measured). So the limit is
 * this much above what a workload may use, and stops a runaway, no more.
 */
const DATA_SLACK_MB = 1_024;

/** What is launched, and where its files are. */
export interface Launch {
  readonly command: readonly string[];
  readonly memoryMb: number;
  /** Folder for `begun`, `exit` and `output.log`. */
  readonly folder: string;
  /** Working directory and HOME, in the folder. */
  readonly home: string;
  /** The workload's own variables; it gets these, PATH and HOME. */
  readonly variables: Readonly<Record<string, string>>;
}

/** A wrapper that waits. */
export interface Waiting {
  /** Leads a group and a session of its own. */
  readonly leader: ProcessIdentity;
  /** Lets it begin. */
  go(): void;
  /** Lets it end without having begun; so does the agent's own end. */
  abandon(): void;
}

/**
 * The wrapper leads the group, outlives the agent and keeps what the agent may not be there to see: how the command ended (`exit`) and what it
 * said (`output.log` and `output.1.log`, 5 MiB each at most). It begins (`begun`) when it is told "go" on its standard input; when
 * that ends before, because the agent died in between, it ends without having run anything. The command's words are arguments, which no shell reads.
 *
 * The wrapper catches signals, so that the group has its leader until the last member has ended. Subshells forget what is caught and keep what
 * is ignored, hence the three lines with `trap`. A signal that comes while the shells fork may be lost; none is after `begun`. A log that
 * cannot be written (the disk is full) is thrown away: the workload goes on.
 */
const WRAPPER = `
read -r go || exit 125
[ "$go" = go ] || exit 125
trap : TERM INT HUP
data_kb=$1 folder=$2
shift 2
unset go PWD OLDPWD SHLVL
{
  trap : TERM INT HUP
  ulimit -c 0
  ulimit -d "$data_kb" 2>/dev/null
  echo 500 2>/dev/null >/proc/self/oom_score_adj
  (
    : >"$folder/begun"
    exec "$@" </dev/null
  )
  echo $? >"$folder/exit.tmp" && mv "$folder/exit.tmp" "$folder/exit"
} 2>&1 | {
  trap '' TERM INT HUP
  umask 077
  cd "$folder" || exit
  : >>output.log
  while :; do
    before=$(wc -c <output.log)
    dd bs=4096 count=256 >>output.log 2>/dev/null
    after=$(wc -c <output.log)
    [ "$after" -gt "$before" ] || break
    [ "$after" -lt 4194304 ] || { mv output.log output.1.log; : >output.log; }
  done
  cat >/dev/null
}
`;

/** Starts a wrapper that waits for its go. Throws when it cannot be started. */
export async function launch({ command, memoryMb, folder, home, variables }: Launch): Promise<Waiting> {
  const dataKb = String((memoryMb + DATA_SLACK_MB) * 1_024);
  const child = spawn('/bin/sh', ['-c', WRAPPER, 'pushleft-workload', dataKb, folder, ...command], {
    cwd: home,
    env: { ...variables, PATH: process.env['PATH'] ?? DEFAULT_PATH, HOME: home },
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  await once(child, 'spawn');
  // It may be gone before it is told anything; whoever looks at it next sees that.
  child.stdin.on('error', () => undefined);
  child.unref();
  const leader = child.pid === undefined ? undefined : identifyProcess(child.pid);
  if (leader === undefined) throw new Error('the process ended before it began');
  setPriority(leader.pid, NICENESS);
  return { leader, go: () => child.stdin.end('go\n'), abandon: () => child.stdin.end() };
}
