import { readFile } from 'node:fs/promises';
import { runProgram, type ServiceUser } from './run-program.ts';

/** Accounts that every distribution ships, least privileged first. */
const CANDIDATES = ['nobody', 'postgres', 'daemon', 'bin'];

/**
 * PostgreSQL refuses to run as root: then an unprivileged account that initdb can resolve (getpwuid) is chosen from
 * /etc/passwd. Undefined for an ordinary user, whose own account serves. Throws when root finds none that it can become.
 */
export async function chooseServiceUser(
  processUid = process.getuid?.() ?? -1,
  passwdFile = '/etc/passwd',
): Promise<ServiceUser | undefined> {
  if (processUid !== 0) return undefined;
  const accounts = parsePasswd(await readFile(passwdFile, 'utf8'));
  for (const name of CANDIDATES) {
    const account = accounts.get(name);
    if (account !== undefined && account.uid !== 0 && (await canBecome(account))) return account;
  }
  throw new Error(
    `PostgreSQL refuses to run as root, and none of these users can be used instead: ${CANDIDATES.join(', ')} ` +
      '(a container that has no user ids but root? start it as an ordinary user)',
  );
}

/** In a user namespace that maps root alone, setuid to anybody else fails with EINVAL; without CAP_SETUID with EPERM. */
async function canBecome(user: ServiceUser): Promise<boolean> {
  const { status } = await runProgram('/bin/sh', ['-c', ':'], { user, deadlineMs: 10_000 });
  return status !== 'EINVAL' && status !== 'EPERM';
}

/** passwd(5): name:password:uid:gid:comment:home:shell. Lines that are no account are passed over. */
function parsePasswd(text: string): Map<string, ServiceUser> {
  const accounts = new Map<string, ServiceUser>();
  for (const line of text.split('\n')) {
    const [name, , uid, gid] = line.split(':');
    if (name !== undefined && /^\d+$/.test(uid ?? '') && /^\d+$/.test(gid ?? '')) {
      accounts.set(name, { name, uid: Number(uid), gid: Number(gid) });
    }
  }
  return accounts;
}
