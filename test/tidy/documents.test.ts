import { describe, expect, test } from 'vitest';
import { ERROR_CODES } from '../../src/errors.js';
import {
  errorTableBreaches,
  isDocument,
  linkBreaches,
  namedRows,
  pathBreaches,
  scriptBreaches,
  variableBreaches,
  type DocumentedVariable,
} from './document-rules.js';
import {
  projectPaths,
  projectTextFiles,
  readProjectFile,
  readProjectJson,
  type ProjectFile,
} from './project-files.js';

const paths = projectPaths();
const documents = projectTextFiles().filter(isDocument);
const scripts = Object.keys((readProjectJson('package.json') as { scripts: Record<string, string> }).scripts);

/** Says so where a rule cannot hold yet; a silent skip would pass for a check. */
function missing(path: string): boolean {
  const isMissing = !paths.includes(path);
  if (isMissing)
    console.warn(`NOT CHECKED: ${path} does not exist yet, so what must agree with it was not compared.`);
  return isMissing;
}

function sample(text: string, path = 'docs/a.md'): ProjectFile {
  return { path, text };
}

describe('README', () => {
  test.skipIf(missing('README.md')).each(['npm ci && npm start', 'npm ci && npm test'])(
    'holds the line %s',
    (line) => {
      expect(
        readProjectFile('README.md')
          .text.split('\n')
          .map((each) => each.trim()),
      ).toContain(line);
    },
  );
});

describe('links in documents', () => {
  test('lead to files and headings that exist', () => {
    expect(documents.length).toBeGreaterThan(3);
    expect(linkBreaches(documents, paths)).toEqual([]);
  });

  test.each([
    '[a](missing.md)',
    '[a](../missing/)',
    '![a](picture.png)',
    '[a]: missing.md',
    '[a](<missing.md> "title")',
    '[a](#nowhere)',
    '[a](a.md#nowhere)',
  ])('the rule finds %s', (link) => {
    expect(linkBreaches([sample(`# Here\n\n${link}\n`)], ['docs/a.md'])).toHaveLength(1);
  });

  test.each([
    '[a](a.md)',
    '[a](../docs/)',
    '[a](#two-planes-one-call)',
    '[a](https://example.com/b.md)',
    '`[a](missing.md)`',
    '```\n[a](missing.md)\n```',
  ])('the rule lets pass %s', (link) => {
    expect(linkBreaches([sample(`## Two planes, one \`call\`\n\n${link}\n`)], ['docs/a.md'])).toEqual([]);
  });
});

describe('files that documents name', () => {
  test.skipIf(missing('src/main.ts'))('exist', () => {
    const current = documents.filter((file) => file.path !== 'CHANGELOG.md');
    expect(pathBreaches(current, paths)).toEqual([]);
  });

  test('the rule finds a file that does not exist, and no other word in code', () => {
    const text = 'see `src/audio/a.ts`, `src/audio/b.ts`, `src/audio/`, `a.ts` and `docs/a.md`';
    expect(pathBreaches([sample(text)], ['src/audio/a.ts', 'docs/a.md'])).toEqual([
      'docs/a.md names src/audio/b.ts, which does not exist',
    ]);
  });
});

describe('npm scripts in documents', () => {
  test('exist in package.json', () => {
    expect(scriptBreaches(documents, scripts)).toEqual([]);
  });

  test('the rule finds a script that does not exist, in code too', () => {
    expect(scriptBreaches([sample('`npm run build`\n```\nnpm run biuld\n```')], ['build'])).toEqual([
      'docs/a.md names npm run biuld, which package.json does not have',
    ]);
  });
});

describe('docs/errors.md', () => {
  test('lists the codes of src/errors.ts', () => {
    expect(errorTableBreaches(readProjectFile('docs/errors.md'), ERROR_CODES)).toEqual([]);
  });

  const codes = { busy: { retryable: true, told: 'caller' }, broken: { retryable: false, told: 'operator' } };
  const busy = '| `busy` | yes | caller | All lines are taken. |';
  const broken = '| `broken` | no | operator | A part of the server is broken. |';

  test('the rule accepts the list as it is', () => {
    expect(errorTableBreaches(sample(`${busy}\n${broken}`), codes)).toEqual([]);
  });

  test.each([
    ['a missing code', busy],
    ['an invented code', `${busy}\n${broken}\n| \`other\` | no | nobody | Something that is not there. |`],
    ['a repeated code', `${busy}\n${broken}\n${busy}`],
    ['another order', `${broken}\n${busy}`],
    ['a wrong retry', `${busy.replace('yes', 'no')}\n${broken}`],
    ['a wrong reader', `${busy}\n${broken.replace('operator', 'caller')}`],
    ['no meaning', `${busy.replace('All lines are taken.', '')}\n${broken}`],
  ])('the rule finds %s', (_, text) => {
    expect(errorTableBreaches(sample(text), codes)).toHaveLength(1);
  });
});

describe('docs/configuration.md', () => {
  test.skipIf(missing('src/config.ts'))('lists the variables of src/config.ts', async () => {
    // By URL, so that this file compiles while the module does not exist.
    const module = new URL('../../src/config.ts', import.meta.url).href;
    const { CONFIG_VARIABLES } = (await import(module)) as {
      CONFIG_VARIABLES: readonly DocumentedVariable[];
    };
    expect(CONFIG_VARIABLES.length).toBeGreaterThan(10);
    expect(variableBreaches(readProjectFile('docs/configuration.md'), CONFIG_VARIABLES)).toEqual([]);
  });

  const variables = [
    { name: 'HOST', default: '127.0.0.1', meaning: 'address to listen on' },
    { name: 'MODEL', default: '', meaning: '`gemini` or `rehearsal`' },
  ];
  const host = '| `HOST` | `127.0.0.1` | address to listen on |';
  const model = '| `MODEL` | unset | `gemini` or `rehearsal` |';

  test('the rule accepts the variables as they are', () => {
    expect(variableBreaches(sample(`${model}\n${host}`), variables)).toEqual([]);
  });

  test.each([
    ['a missing variable', host],
    ['an invented variable', `${host}\n${model}\n| \`NAME\` | unset | a name |`],
    ['a repeated variable', `${host}\n${model}\n${model}`],
    ['another default', `${host.replace('127.0.0.1', '0.0.0.0')}\n${model}`],
    ['a default where there is none', `${host}\n${model.replace('unset', '`gemini`')}`],
    ['another meaning', `${host.replace('address', 'name')}\n${model}`],
  ])('the rule finds %s', (_, text) => {
    expect(variableBreaches(sample(text), variables)).toHaveLength(1);
  });
});

test('a table row is read by its cells, escaped bars included', () => {
  expect(namedRows(sample('| `a` \\| b | c |\n|---|---|\n| plain | c |'))).toEqual([
    { names: ['a'], cells: ['`a` \\| b', 'c'] },
  ]);
});
