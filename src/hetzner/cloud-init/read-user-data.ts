import { HOST_PATHS } from './host-paths.ts';

/** The line that ends every heredoc of the script. */
export const HEREDOC_END = 'PUSHLEFT_END_OF_FILE';

const PUT_FILE = new RegExp(
  `^ {2}put_file (0[0-7]{3}) (/\\S+) <<'${HEREDOC_END}'\\n([\\s\\S]*?)^${HEREDOC_END}$`,
  'gm',
);

/** What a rendered script would write. `environment` is agent.env parsed, `enrollmentSecret` without its line end. */
export interface UserData {
  readonly environment: Readonly<Record<string, string>>;
  readonly gatewayCaPem: string;
  readonly releaseKeyPem: string;
  readonly enrollmentSecret: string;
  readonly files: ReadonlyMap<string, { readonly mode: number; readonly content: string }>;
}

/**
 * The inverse of renderUserData: reads the files out of a script's heredocs, so that a local boot or a test can act on them without
 * running it. Throws where a file is missing; the message holds no content.
 */
export function readUserData(script: string): UserData {
  const files = new Map<string, { mode: number; content: string }>();
  for (const [, mode = '', path = '', content = ''] of script.matchAll(PUT_FILE)) {
    files.set(path, { mode: Number.parseInt(mode, 8), content });
  }
  const content = (path: string) => {
    const file = files.get(path);
    if (file === undefined) throw new Error(`the user-data writes no ${path}`);
    return file.content;
  };
  return {
    environment: parseEnvironment(content(HOST_PATHS.environment)),
    gatewayCaPem: content(HOST_PATHS.gatewayCa),
    releaseKeyPem: content(HOST_PATHS.releaseKey),
    enrollmentSecret: content(HOST_PATHS.enrollmentSecret).trimEnd(),
    files,
  };
}

function parseEnvironment(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const equals = line.indexOf('=');
        return [line.slice(0, equals), line.slice(equals + 1)];
      }),
  );
}
