import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { suite, test, type TestContext } from 'node:test'
import { digestToken } from '../../../src/http/caller.ts'
import { readSettings } from '../../../src/standalone/settings/settings.ts'
import { tokenList, type Tokens } from '../../../src/standalone/settings/tokens.ts'
import { SettingError } from '../../../src/standalone/settings/variables.ts'
import { measureCpuTime } from '../../support/cpu-time.ts'
import { skipWithoutCommand } from '../../support/skip-reasons.ts'
import { createTempFile } from '../../support/temp-files.ts'

function sha256(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

function readTokens(entries: string): Tokens | undefined {
  return readSettings({ PLANT_STORE_TOKENS: entries }).tokens
}

function readTokensFile(t: TestContext, content: string | Buffer): Tokens | undefined {
  return readSettings({ PLANT_STORE_TOKENS_FILE: createTempFile(t, content) }).tokensFile?.value
}

function createTokens(...rows: [token: string, owner: string, access?: 'read' | 'write'][]): Tokens {
  return new Map(rows.map(([token, owner, access = 'write']) => [digestToken(token), { owner, access }]))
}

suite('PLANT_STORE_TOKENS accepts', () => {
  for (const [what, entries, tokens] of [
    ['several owners and tokens', 'ada:YWRh,bob:Ym9i==', createTokens(['YWRh', 'ada'], ['Ym9i==', 'bob'])],
    ['an owner with colons', 'urn:user:1:YWRh', createTokens(['YWRh', 'urn:user:1'])],
    ['an owner with non-Latin letters', 'ада#1:YWRh', createTokens(['YWRh', 'ада#1'])],
    ['several tokens for one owner', 'ada:old,ada:new', createTokens(['old', 'ada'], ['new', 'ada'])],
    ['a read-only token', 'ada:YWRh read', createTokens(['YWRh', 'ada', 'read'])],
    ['more white space before "read"', 'ada:YWRh \t read', createTokens(['YWRh', 'ada', 'read'])],
    ['a digest', `ada:sha256=${sha256('YWRh')}`, createTokens(['YWRh', 'ada'])],
    ['a digest in upper case', `ada:sha256=${sha256('YWRh').toUpperCase()}`, createTokens(['YWRh', 'ada'])],
    ['a digest of a read-only token', `ada:sha256=${sha256('YWRh')} read`, createTokens(['YWRh', 'ada', 'read'])],
    ['a digest in the older form', `ada:$sha256$${sha256('YWRh')}`, createTokens(['YWRh', 'ada'])],
    [
      'a digest in the older form, in upper case',
      `ada:$sha256$${sha256('YWRh').toUpperCase()}`,
      createTokens(['YWRh', 'ada']),
    ],
    [
      'a digest of a read-only token in the older form',
      `ada:$sha256$${sha256('YWRh')} read`,
      createTokens(['YWRh', 'ada', 'read']),
    ],
    ['white space around entries, and empty entries', ' ada:YWRh , , ', createTokens(['YWRh', 'ada'])],
    ['the token "read"', 'ada:read', createTokens(['read', 'ada'])],
    ['64 hexadecimal digits as a token', `ada:${sha256('x')}`, createTokens([sha256('x'), 'ada'])],
    ['64 hexadecimal digits at the end of a token', `ada:x${sha256('x')}`, createTokens([`x${sha256('x')}`, 'ada'])],
    ['48 hexadecimal digits as a token', `ada:${'a'.repeat(48)}`, createTokens(['a'.repeat(48), 'ada'])],
    [
      '64 hexadecimal digits after a prefix',
      `ada:key_${'a'.repeat(64)}`,
      createTokens([`key_${'a'.repeat(64)}`, 'ada']),
    ],
    ['72 hexadecimal digits as a token', `ada:${'a'.repeat(72)}`, createTokens(['a'.repeat(72), 'ada'])],
    ['96 hexadecimal digits as a token', `ada:${'a'.repeat(96)}`, createTokens(['a'.repeat(96), 'ada'])],
    [
      '62 hexadecimal digits after a decimal digit',
      `ada:0${'a'.repeat(61)}`,
      createTokens([`0${'a'.repeat(61)}`, 'ada']),
    ],
  ] as const) {
    test(what, () => assert.deepEqual(readTokens(entries), tokens))
  }
})

const FORMAT_MESSAGE =
  'must be owner:token or owner:sha256=<64 hexadecimal digits>, followed by " read" if the token is read-only. ' +
  'An owner must not contain white space, commas or quotes, or begin with "#". ' +
  'A token must consist of letters, digits and -._~+/, with any number of "=" at its end'

const DIGEST_MESSAGE =
  'looks like a digest, but would be read as a token. Write the digest as owner:sha256=<64 hexadecimal digits>; ' +
  'the older form owner:$sha256$<digits> needs single quotes, or a shell expands its $'

const EMPTY_MESSAGE = 'must contain at least one entry, such as owner:token'
const NOT_UTF8_MESSAGE = 'contains U+FFFD, which replaces bytes that are not UTF-8; use UTF-8'

suite('PLANT_STORE_TOKENS rejects invalid values without quoting them', () => {
  const unset = 'has the token "undefined" or "null", or an empty one; check for an unset variable'
  const digest = sha256('secret')
  const malformed = [
    ...['secret', 'ada:', 'ada: secret', 'ada :secret', 'ada:sec ret', 'ada:sec=ret', 'ada:secrèt'],
    ...[
      '\u200bada:secret',
      'a\u2060da:secret',
      'ada\u00ad:secret',
      '#old:secret',
      '"ada":secret',
      "'ada:secret",
      'ada:secret bob:other',
      'a\u0007da:secret',
      'a\u00a0da:secret',
    ],
    ...['ada:secret write', 'ada:secret READ', 'ada:secretread read read', 'ada:$sha256$', `ada:$sha512$${digest}`],
    ...[digest.slice(1), `${digest}0`, `${digest.slice(1)}g`].flatMap((wrong) => [
      `ada:$sha256$${wrong}`,
      `ada:sha256=${wrong}`,
    ]),
    ...[`ada:SHA256=${digest}`, `ada:sha512=${digest}`, `ada:sha256==${digest}`, `ada:sha256=${digest}=`],
    ...[`ada:\${sha256}\$${digest}`, `ada:$$sha256$$${digest}`, `ada:$sha256${digest}`, `ada:$${digest}`],
  ]
  const digests = [
    ...['ada:sha256=', 'ada:sha256==', 'ada:SHA-256', `ada:sha256${digest}`, `ada:sha256-${digest}`],
    ...['ada:4711sha256', 'ada:4711SHA-256 read', `ada:zsh${'c'.repeat(62)}`],
    ...[`ada:sha256:${digest}`, `ada:$sha256$:${digest}`, `sha256:${digest}`, `ada:SHA-256:${digest} read`],
  ]
  const rows: readonly [entries: string, problem: string, attack?: string][] = [
    ...malformed.map((entries): (typeof rows)[number] => [entries, `: entry 1 ${FORMAT_MESSAGE}`]),
    ...digests.map((entries): (typeof rows)[number] => [entries, `: entry 1 ${DIGEST_MESSAGE}`]),
    ['ada:YWRh,:secret', `: entry 2 ${FORMAT_MESSAGE}`],
    ['', ` ${EMPTY_MESSAGE}`],
    [' , ', ` ${EMPTY_MESSAGE}`],
    ['ada:YWRh,bob:undefined', `: entry 2 ${unset}`],
    ['bob:null read', `: entry 1 ${unset}`],
    [`bob:$sha256$${sha256('undefined')}`, `: entry 1 ${unset}`],
    [`bob:$sha256$${sha256('')}`, `: entry 1 ${unset}`],
    ['ada:YWRh,bob\ufffd:secret', `: entry 2 ${NOT_UTF8_MESSAGE}`, ' (Unicode replacement collision)'],
    ['ada:secret,bob:secret', ': entry 2 repeats the token of an earlier entry'],
    ['ada:secret,,ada:secret read', ': entry 3 repeats the token of an earlier entry'],
    [`ada:secret,bob:$sha256$${digest}`, ': entry 2 repeats the token of an earlier entry'],
    [`ada:$sha256$${digest},bob:$sha256$${digest.toUpperCase()}`, ': entry 2 repeats the token of an earlier entry'],
  ]
  for (const [entries, problem, attack = ''] of rows) {
    test(JSON.stringify(entries) + attack, () => {
      assert.throws(() => readTokens(entries), new SettingError(`PLANT_STORE_TOKENS${problem}`))
    })
  }
})

/** Digests with each first digit, and some that start with several decimal digits, which some tools expand together. */
const DIGESTS = '0 1 2 3 4 5 6 7 8 9 a b c d e f 00 2434 07 a1 99999'
  .split(' ')
  .map(
    (start) =>
      start +
      sha256(start)
        .replace(/^[0-9]+/, 'c')
        .padEnd(64, 'd'),
  )
  .flatMap((digest) => [digest.slice(0, 64), digest.slice(0, 64).toUpperCase()])

const LEGACY_DIGESTS = DIGESTS.map((digest) => `ada:$sha256$${digest}`)

/** Runs the script once for each string, with `TEXT` replaced by the string. Returns the printed lines. */
function printTexts(command: string, args: readonly string[], script: string, texts: readonly string[]): string[] {
  const input = texts.map((text) => script.replace('TEXT', () => text)).join('\n')
  const environment = { PATH: process.env['PATH'] }
  return execFileSync(command, args, { input, encoding: 'utf8', env: environment }).trimEnd().split('\n')
}

function createMakefile(texts: readonly string[]): string {
  return `all:\n${texts.map((text) => `\t@printf '%s\\n' '${text}'\n`).join('')}`
}

suite('a legacy digest mangled by variable expansion is never accepted as a token', () => {
  const quoted = `printf '%s\\n' "TEXT"`
  const heredoc = 'cat <<END\nTEXT\nEND'
  for (const [what, command, args, script] of [
    ['in double quotes in sh', 'sh', [], quoted],
    ['in double quotes in sh -c', 'sh', ['-c', 'eval "$(cat)"', 'configure.sh'], quoted],
    ['in double quotes in sh -c with a name that ends with "e"', 'sh', ['-c', 'eval "$(cat)"', 'configure'], quoted],
    ['in double quotes in a shell with arguments', 'sh', ['-s', '--', 'start', 'x', '-y'], quoted],
    [
      'in double quotes in a shell with the names of stages',
      'sh',
      ['-s', '--', 'prod', 'stage', 'web', '8080'],
      quoted,
    ],
    ['in double quotes in bash', 'bash', [], quoted],
    ['in double quotes in zsh', 'zsh', [], quoted],
    ['without quotes in bash', 'bash', [], "printf '%s\\n' TEXT"],
    ['in a heredoc of sh', 'sh', [], heredoc],
    ['in a heredoc of bash', 'bash', [], heredoc],
  ] as const) {
    test(what, { skip: skipWithoutCommand(command) }, () => {
      const entries = printTexts(command, args, script, LEGACY_DIGESTS)
      assert.equal(entries.length, LEGACY_DIGESTS.length)
      for (const entry of entries) assert.throws(() => readTokens(entry), SettingError, entry)
    })
  }

  test(
    'a single-quoted legacy digest in a make recipe is never accepted as a token',
    { skip: skipWithoutCommand('make') },
    () => {
      const entries = printTexts('make', ['-s', '-f', '-'], 'TEXT', [createMakefile(LEGACY_DIGESTS)])
      assert.equal(entries.length, LEGACY_DIGESTS.length)
      for (const entry of entries) assert.throws(() => readTokens(entry), SettingError, entry)
    },
  )

  for (const [what, expand] of [
    // Compose rejects `$2`.
    ['when expanded as in Compose', (text: string) => text.replace(/\$[_a-z][_a-z0-9]*/gi, '')],
    ['when expanded as in a Dockerfile or in zsh', (text: string) => text.replace(/\$(?:[0-9]+|[_a-z]\w*)/gi, '')],
    ['when expanded as in make', (text: string) => text.replace(/\$./g, '')],
    ['when only the name is expanded', (text: string) => text.replace('$sha256', '')],
    ['when only the digits are expanded', (text: string) => text.replace(/\$[0-9A-F]/i, '')],
    [
      'when the first $$ is a process ID, in sh',
      (text: string) => text.replace(/\$(sha256)\$(?:[0-9]|\w+)/i, '4711$1'),
    ],
    [
      'when the first $$ is a process ID, in zsh',
      (text: string) => text.replace(/\$(sha256)\$(?:[0-9]+|\w+)/i, '4711$1'),
    ],
    ['when each $ becomes a process ID', (text: string) => text.replaceAll('$', '4711')],
    ['when the second $$ is a process ID', (text: string) => text.replace('$sha256$', '1')],
    ['when $0 is the path of a script', (text: string) => text.replace(/\$sha256\$./, './configure')],
    ['when $0 is a path that ends with a digit', (text: string) => text.replace(/\$sha256\$./, './run2')],
  ] as const) {
    test(what, () => {
      for (const entry of LEGACY_DIGESTS.map(expand)) assert.throws(() => readTokens(entry), SettingError, entry)
    })
  }
})

suite('a digest is read correctly after expansion by a shell or make', () => {
  const [entry, token] = [`ada:sha256=${sha256('YWRh')} read`, createTokens(['YWRh', 'ada', 'read'])]
  for (const [what, command, args, script, text] of [
    ['in double quotes in sh', 'sh', [], `printf '%s\\n' "TEXT"`, entry],
    ['in double quotes in bash', 'bash', [], `printf '%s\\n' "TEXT"`, entry],
    ['in a heredoc in sh', 'sh', [], 'cat <<END\nTEXT\nEND', entry],
    ['in a make recipe', 'make', ['-s', '-f', '-'], 'TEXT', createMakefile([entry])],
    ['in the older form, in single quotes', 'sh', [], `printf '%s\\n' 'TEXT'`, `ada:$sha256$${sha256('YWRh')} read`],
    [
      'in the older form, with $$ in a make recipe',
      'make',
      ['-s', '-f', '-'],
      'TEXT',
      createMakefile([`ada:$$sha256$$${sha256('YWRh')} read`]),
    ],
  ] as const) {
    test(what, { skip: skipWithoutCommand(command) }, () => {
      assert.deepEqual(readTokens(printTexts(command, args, script, [text])[0]!), token)
    })
  }

  test('a digest is read correctly from a Node env file', (t) => {
    for (const form of ['sha256=', '$sha256$']) {
      const path = createTempFile(t, `PLANT_STORE_TOKENS="ada:${form}${sha256('YWRh')} read"\r\n`)
      const args = [`--env-file=${path}`, '--print', 'process.env.PLANT_STORE_TOKENS']
      const value = execFileSync(process.execPath, args, { encoding: 'utf8', env: {} }).trimEnd()
      assert.deepEqual(readTokens(value), token)
    }
  })
})

suite('PLANT_STORE_TOKENS_FILE', () => {
  for (const [what, content, tokens] of [
    ['one token per line', 'ada:YWRh\nbob:Ym9i read', createTokens(['YWRh', 'ada'], ['Ym9i', 'bob', 'read'])],
    ['CRLF and empty lines', 'ada:YWRh\r\n\r\n  bob:Ym9i\n', createTokens(['YWRh', 'ada'], ['Ym9i', 'bob'])],
    ['comments', '# see https://wiki/tokens\nada:YWRh\n#old:secret\n  # bob:Ym9i\n', createTokens(['YWRh', 'ada'])],
    ['a byte order mark', '\ufeffada:YWRh\n', createTokens(['YWRh', 'ada'])],
    ['a byte order mark before a comment', '\ufeff# tokens\nada:YWRh\n', createTokens(['YWRh', 'ada'])],
  ] as const) {
    test(`accepts ${what}`, (t) => assert.deepEqual(readTokensFile(t, content), tokens))
  }

  for (const [what, content, problem] of [
    ['a line that is not an entry', '# tokens\nada:YWRh\n\nbob\n', `: line 4 ${FORMAT_MESSAGE}`],
    ['a comment after an entry', 'ada:YWRh # ada', `: line 1 ${FORMAT_MESSAGE}`],
    ['two entries on a line', 'ada:YWRh,bob:Ym9i', `: line 1 ${FORMAT_MESSAGE}`],
    ['an owner with U+0000', 'a\0da:YWRh', `: line 1 ${FORMAT_MESSAGE}`],
    [
      'text that is not UTF-8 (Unicode replacement collision)',
      Buffer.from('ad\xe0:YWRh', 'latin1'),
      ': the file must be UTF-8',
    ],
    ['an owner with U+FFFD (Unicode replacement collision)', 'ada:YWRh\nad\ufffd:b', `: line 2 ${NOT_UTF8_MESSAGE}`],
    ['a digest whose $ a heredoc has expanded', `ada:${sha256('x').slice(1)}\n`, `: line 1 ${DIGEST_MESSAGE}`],
    ['UTF-16', Buffer.from('ada:YWRh', 'utf16le'), `: line 1 ${FORMAT_MESSAGE}`],
    ['only comments', '# ada:YWRh\n', ` ${EMPTY_MESSAGE}`],
    ['16 MiB without a valid entry', 'é'.repeat(2 ** 23), `: line 1 ${FORMAT_MESSAGE}`],
    ['an empty file', '', ` ${EMPTY_MESSAGE}`],
  ] as const) {
    test(`rejects ${what}`, (t) => {
      assert.throws(() => readTokensFile(t, content), new SettingError(`PLANT_STORE_TOKENS_FILE${problem}`))
    })
  }
})

test('PLANT_STORE_TOKENS is parsed in linear time', async () => {
  for (const [begin, piece, end] of [
    ['', ',', ''],
    ['', ' ', 'x'],
    ['', ':', '!'],
    ['', ':a', '!'],
    ['a:', 'a', '!'],
    ['a:a', '=', '!'],
    ['a:', 'ha256', '!'],
    ['a:', '/', '!'],
    ['sha256', ':sha256', '!'],
    ['', 'a', ''],
    ['', 'a:a,', ''],
  ] as const) {
    const entries = begin + piece.repeat(2 ** 17 / piece.length) + end
    const read = (): void => assert.throws(() => tokenList('PLANT_STORE_TOKENS').parse(entries), SettingError)
    // Linear time takes less than a third of this limit, and quadratic time takes 16 s.
    assert.ok((await measureCpuTime(read, 120_000)) < 120_000, piece)
  }
})
