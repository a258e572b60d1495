import * as v from 'valibot';
import { type HostFile, hostFiles, template } from './files.ts';
import { HEREDOC_END } from './read-user-data.ts';
import { CloudInitValues } from './values.ts';

/** Most bytes of user-data that the provider takes. Hetzner API, `POST /servers`. */
export const USER_DATA_MAX_BYTES = 32_768;

/** The script, or why it cannot be rendered. A problem names the value, never shows it: one of them is a secret. */
export type RenderedUserData =
  | { readonly ok: true; readonly script: string }
  | {
      readonly ok: false;
      readonly code: 'value_invalid' | 'user_data_too_large';
      readonly problems: readonly string[];
    };

/**
 * Renders a node's user-data: a bash script of at most 32,768 bytes in UTF-8. Every value is checked first, all problems are told at
 * once, and each value appears only inside a quoted heredoc, which bash copies without looking into it.
 */
export function renderUserData(values: CloudInitValues): RenderedUserData {
  const checked = v.safeParse(CloudInitValues, values, { abortPipeEarly: true });
  if (!checked.success) return { ok: false, code: 'value_invalid', problems: checked.issues.map(describeIssue) };
  const files = hostFiles(checked.output).map(putFile).join('\n');
  const script = template('bootstrap.sh').replace('  # @FILES@', () => files);
  const bytes = Buffer.byteLength(script, 'utf8');
  if (bytes > USER_DATA_MAX_BYTES) {
    const problem = `user-data has ${bytes} bytes, the provider takes ${USER_DATA_MAX_BYTES}; the gateway CA bundle is the part that varies`;
    return { ok: false, code: 'user_data_too_large', problems: [problem] };
  }
  return { ok: true, script };
}

function putFile({ path, mode, content }: HostFile): string {
  // The grammars of the values exclude both; a unit that broke the rule would end the heredoc early.
  if (!content.endsWith('\n') || content.split('\n').includes(HEREDOC_END))
    throw new Error(`${path} does not fit a heredoc`);
  return `  put_file ${mode} ${path} <<'${HEREDOC_END}'\n${content}${HEREDOC_END}`;
}

function describeIssue(issue: v.BaseIssue<unknown>): string {
  const reason = issue.type === 'regex' || issue.type === 'check' ? issue.message : issue.type;
  return `${v.getDotPath(issue) ?? 'values'}: ${reason.startsWith('Invalid') ? 'is malformed' : reason}`;
}
