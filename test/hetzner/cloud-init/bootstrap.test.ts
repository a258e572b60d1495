import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { renderUserData } from '../../../src/hetzner/cloud-init/render.ts';
import { runWith, someValues, temporaryFolder } from './support.ts';

let script: string;
let secret: string;
beforeAll(async () => {
  const values = await someValues();
  secret = values.enrollmentSecret;
  const outcome = renderUserData(values);
  if (!outcome.ok) expect.unreachable();
  script = outcome.script;
});

/** Programs that the script finds before the system's: each notes its call, then does what its body says. */
function machine(programs: Readonly<Record<string, string>>) {
  const folder = temporaryFolder();
  const bin = join(folder.path, 'bin');
  mkdirSync(bin);
  for (const [name, body] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/bash\necho "${name} $*" >>"$PUSHLEFT_ROOT/calls"\n${body}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const path = `${bin}:${process.env['PATH']}`;
  return {
    run: (command: string) => runWith(script, folder.path, command, { PATH: path }),
    calls: () => readFileSync(join(folder.path, 'calls'), 'utf8').trimEnd().split('\n'),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

/** Fails until it was called `times` times. */
const failsAtFirst = (name: string, times: number) =>
  `[[ $(grep -c '^${name} ' "$PUSHLEFT_ROOT/calls") -gt ${times} ]] || exit 100`;

describe('apt', () => {
  test('lists lock held twice: the third attempt counts', () => {
    using host = machine({ 'apt-get': failsAtFirst('apt-get', 2), sleep: '' });
    const { status, output } = host.run('apt_get update');
    expect(status).toBe(0);
    expect(output.split('\n').filter((line) => line.startsWith('pushleft-bootstrap: '))).toEqual([
      'pushleft-bootstrap: apt-get update failed in attempt 1, another one follows',
      'pushleft-bootstrap: apt-get update failed in attempt 2, another one follows',
    ]);
    expect(host.calls().filter((call) => call.startsWith('apt-get'))).toHaveLength(3);
    expect(host.calls()[0]).toBe('apt-get -q -y -o DPkg::Lock::Timeout=30 update');
  });

  test('held for ever: gives up after 300 s', () => {
    // SECONDS can be assigned: the test's sleep is a function that lets 100 of them pass.
    using host = machine({ 'apt-get': 'exit 100' });
    const { status, output } = host.run('sleep() { SECONDS=$((SECONDS + 100)); }; apt_get update');
    expect(status).toBe(1);
    expect(output).toContain('apt-get update failed for 300 s');
    expect(host.calls()).toHaveLength(4);
  });

  test('packages: exactly the required ones', () => {
    using host = machine({ 'apt-get': '' });
    expect(host.run('install_packages').status).toBe(0);
    expect(host.calls()[1]).toMatch(/ install --no-install-recommends ca-certificates curl openssl zstd docker\.io$/);
  });
});

describe('a whole run', () => {
  const everything = { modprobe: '', sysctl: '', 'apt-get': '', dpkg: 'echo amd64', systemctl: '' };
  /** The release steps have tests of their own; here they only have to come in their places. */
  const released =
    'download_release() { :; }; verify_release() { :; }; extract_agent() { printf "#!/bin/bash\\necho agent \\$*" >"$1/agent"; };';

  test('each phase says where it is, in order; the secret is in no line', () => {
    using host = machine(everything);
    const { status, output } = host.run(`${released} main`);
    expect(status).toBe(0);
    const phases = [...output.matchAll(/^pushleft-bootstrap: phase (\w+) after \d+ s$/gm)].map(([, name]) => name);
    expect(phases).toEqual([
      'files',
      'kernel',
      'packages',
      'download',
      'verify',
      'install',
      'enroll',
      'service',
      'complete',
    ]);
    expect(output).toContain('agent --version\n');
    expect(output).toContain('agent enroll --wait 600\n');
    expect(output).not.toContain(secret);
    expect(host.calls().slice(-3)).toEqual([
      'systemctl daemon-reload',
      'systemctl enable --now docker.service',
      'systemctl enable --now pushleft-agent.service',
    ]);
  });

  test('a phase fails: named with its status, nothing after it runs', () => {
    using host = machine({ ...everything, modprobe: 'exit 3' });
    const { status, output } = host.run(`${released} main`);
    expect(status).toBe(3);
    expect(output.trimEnd().split('\n').at(-1)).toBe('pushleft-bootstrap: failed in phase kernel with exit status 3');
    expect(host.calls()).toEqual(['modprobe br_netfilter']);
  });

  test('a release that does not verify: nothing is installed', () => {
    using host = machine(everything);
    const { status, output } = host.run(`${released} verify_release() { return 1; }; main`);
    expect(status).toBe(1);
    expect(output).toContain('failed in phase verify with exit status 1');
    expect(output).not.toContain('agent --version');
  });

  test('an architecture without an agent: said so', () => {
    using host = machine({ ...everything, dpkg: 'echo riscv64' });
    const { status, output } = host.run(`${released} main`);
    expect(status).toBe(1);
    expect(output).toContain('there is no agent for architecture riscv64');
  });

  test("enrolment refused: ends there, with the agent's own status", () => {
    using host = machine(everything);
    const agent = 'extract_agent() { printf "#!/bin/bash\\n[[ \\$1 != enroll ]]" >"$1/agent"; };';
    const { status, output } = host.run(`${released} ${agent} main`);
    expect(status).toBe(1);
    expect(output.trimEnd().split('\n').at(-1)).toBe('pushleft-bootstrap: failed in phase enroll with exit status 1');
  });
});
