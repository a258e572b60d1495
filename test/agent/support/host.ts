import { mkdir, writeFile } from 'node:fs/promises';
import { enroll } from '../../../agent/enroll.ts';
import { HttpsJson } from '../../../agent/https-json.ts';
import { IdentityStore } from '../../../agent/identity-store.ts';
import { createLog } from '../../../agent/log.ts';
import { diskFs } from '../../../agent/state-fs.ts';
import { systemTime } from '../../../agent/time.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { type AgentProcess, startAgent } from './agent-process.ts';
import { type Authority, createAuthority } from './authority.ts';
import { enrollingWith, type StubGateway, startStubGateway } from './stub-gateway.ts';

/** The node that every test's host is. */
export const NODE_ID = '10000000-0000-4000-8000-00000000000a';
/** Planted: must be found nowhere but in its file and in the request's body. */
export const SECRET = '5ec4e7'.padEnd(64, 'a');

/** One host with its gateway: a state directory, the environment of its agent, and real listeners. */
export interface Host extends AsyncDisposable {
  readonly stateDir: string;
  readonly authority: Authority;
  readonly gateway: StubGateway;
  readonly env: Readonly<Record<string, string>>;
  start(...args: readonly string[]): AgentProcess;
  startWith(more: Readonly<Record<string, string>>, ...args: readonly string[]): AgentProcess;
}

/** A fresh host, whose secret is on disk and awaited by the gateway. */
export async function freshHost(more: Readonly<Record<string, string>> = {}): Promise<Host> {
  const folder = await temporaryDirectory();
  const stateDir = `${folder.path}/state`;
  await mkdir(stateDir, { mode: 0o700 });
  await writeFile(`${stateDir}/enrollment-secret`, `${SECRET}\n`, { mode: 0o600 });
  const authority = await createAuthority(folder.path);
  const gateway = await startStubGateway(authority);
  gateway.enroll = enrollingWith(authority, SECRET).behaviour;
  const env = {
    PUSHLEFT_NODE_ID: NODE_ID,
    PUSHLEFT_AGENT_CA: authority.caFile,
    PUSHLEFT_GATEWAY_URL: gateway.gatewayUrl,
    PUSHLEFT_ENROLL_URL: gateway.enrollUrl,
    PUSHLEFT_AGENT_STATE_DIR: stateDir,
    PUSHLEFT_RUNTIME: 'process',
    PUSHLEFT_DOCKER_SOCKET: `${stateDir}/no-docker.sock`,
    ...more,
  };
  return {
    stateDir,
    authority,
    gateway,
    env,
    start: (...args) => startAgent(args, env),
    startWith: (more, ...args) => startAgent(args, { ...env, ...more }),
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** A host that has enrolled, in this process: starting one for each test would take longer than most of them. */
export async function enrolledHost(more: Readonly<Record<string, string>> = {}): Promise<Host> {
  const host = await freshHost(more);
  const listener = new HttpsJson(new URL(host.gateway.enrollUrl), { ca: host.authority.caPem }, systemTime);
  const outcome = await enroll({
    nodeId: NODE_ID,
    store: new IdentityStore(diskFs, host.stateDir),
    listener,
    time: systemTime,
    log: createLog('silent'),
    waitMs: 0,
    replace: false,
    stopping: new AbortController().signal,
  });
  await listener.close();
  if (outcome.kind !== 'enrolled') throw new Error(`not enrolled: ${JSON.stringify(outcome)}`);
  return host;
}
