import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { suite, test, type TestContext } from 'node:test'
import { digestToken } from '../../../src/http/caller.ts'
import { readSettings } from '../../../src/standalone/settings/settings.ts'
import { tokenList, type Tokens } from '../../../src/standalone/settings/tokens.ts'
import { SettingError } from '../../../src/standalone/settings/variables.ts'
import { cpuTime } from '../../support/cpu-time.ts'
import { temporaryFile } from '../../support/temporary-file.ts'

function sha256(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

function tokensOf(entries: string): Tokens | undefined {
  return readSettings({ PLANT_STORE_TOKENS: entries }).tokens
}

function tokensOfFile(t: TestContext, content: string | Buffer): Tokens | undefined {
  return readSettings({ PLANT_STORE_TOKENS_FILE: temporaryFile(t, content) }).tokensFile?.value
}

function table(...rows: [token: string, owner: string, access?: 'read' | 'write'][]): Tokens {
  return new Map(rows.map(([token, owner, access = 'write']) => [digestToken(token), { owner, access }]))
}

suite('PLANT_STORE_TOKENS takes', () => {
  for (const [what, entries, tokens] of [
    ['owners with their tokens', 'ada:YWRh,bob:Ym9i==', table(['YWRh', 'ada'], ['Ym9i==', 'bob'])],
    ['an owner with colons, as a token has none', 'urn:user:1:YWRh', table(['YWRh', 'urn:user:1'])],
    ['an owner in any script', 'ада#1:YWRh', table(['YWRh', 'ада#1'])],
    ['several tokens of one owner', 'ada:old,ada:new', table(['old', 'ada'], ['new', 'ada'])],
    ['a token that may only read', 'ada:YWRh read', table(['YWRh', 'ada', 'read'])],
    ['more than one space before that', 'ada:YWRh \t read', table(['YWRh', 'ada', 'read'])],
    ['a digest', `ada:$sha256$${sha256('YWRh')}`, table(['YWRh', 'ada'])],
    ['a digest in upper case', `ada:$sha256$${sha256('YWRh').toUpperCase()}`, table(['YWRh', 'ada'])],
    ['a digest of a token that may only read', `ada:$sha256$${sha256('YWRh')} read`, table(['YWRh', 'ada', 'read'])],
    ['space around an entry, and blank entries', ' ada:YWRh , , ', table(['YWRh', 'ada'])],
    ['a token that is called read', 'ada:read', table(['read', 'ada'])],
  ] as const) {
    test(what, () => assert.deepEqual(tokensOf(entries), tokens))
  }
})

const FORM =
  'takes owner:token or owner:$sha256$ with 64 hexadecimal digits, and " read" behind it if the token may only read. ' +
  'An owner has no white space, comma or quote and does not begin with "#"; ' +
  'a token has letters, digits and -._~+/, then any "="'

suite('PLANT_STORE_TOKENS refuses, and quotes nothing of', () => {
  const unset = 'must not hold the token of an unset variable'
  const digest = sha256('secret')
  const malformed = [
    ...['secret', 'ada:', 'ada: secret', 'ada :secret', 'ada:sec ret', 'ada:sec=ret', 'ada:secrèt'],
    ...['#old:secret', '"ada":secret', "'ada:secret", 'ada:secret bob:other', 'a\u0007da:secret', 'a\u00a0da:secret'],
    ...['ada:secret write', 'ada:secret READ', 'ada:secretread read read', 'ada:$sha256$', `ada:$sha512$${digest}`],
    ...[digest.slice(1), `${digest}0`, `${digest.slice(1)}g`].map((wrong) => `ada:$sha256$${wrong}`),
  ]
  const rows: readonly [entries: string, problem: string][] = [
    ...malformed.map((entries): (typeof rows)[number] => [entries, `${FORM}; entry 1 is not of that form`]),
    ['ada:YWRh,:secret', `${FORM}; entry 2 is not of that form`],
    ['', 'takes at least one owner:token; there is none'],
    [' , ', 'takes at least one owner:token; there is none'],
    ['ada:YWRh,bob:undefined', `${unset}; entry 2 does`],
    ['bob:null read', `${unset}; entry 1 does`],
    [`bob:$sha256$${sha256('undefined')}`, `${unset}; entry 1 does`],
    [`bob:$sha256$${sha256('')}`, `${unset}; entry 1 does`],
    ['ada:secret,bob:secret', 'takes each token once; entry 2 repeats one'],
    ['ada:secret,,ada:secret read', 'takes each token once; entry 3 repeats one'],
    [`ada:secret,bob:$sha256$${digest}`, 'takes each token once; entry 2 repeats one'],
    [`ada:$sha256$${digest},bob:$sha256$${digest.toUpperCase()}`, 'takes each token once; entry 2 repeats one'],
  ]
  for (const [entries, problem] of rows) {
    test(JSON.stringify(entries), () => {
      assert.throws(() => tokensOf(entries), new SettingError('PLANT_STORE_TOKENS', problem))
    })
  }
})

suite('PLANT_STORE_TOKENS_FILE', () => {
  for (const [what, content, tokens] of [
    ['a token in each line', 'ada:YWRh\nbob:Ym9i read', table(['YWRh', 'ada'], ['Ym9i', 'bob', 'read'])],
    ['CRLF, and blank lines', 'ada:YWRh\r\n\r\n  bob:Ym9i\n', table(['YWRh', 'ada'], ['Ym9i', 'bob'])],
    ['comments', '# see https://wiki/tokens\nada:YWRh\n#old:secret\n  # bob:Ym9i\n', table(['YWRh', 'ada'])],
    ['a byte order mark', '\ufeffada:YWRh\n', table(['YWRh', 'ada'])],
    ['a byte order mark before a comment', '\ufeff# tokens\nada:YWRh\n', table(['YWRh', 'ada'])],
  ] as const) {
    test(`takes ${what}`, (t) => assert.deepEqual(tokensOfFile(t, content), tokens))
  }

  for (const [what, content, problem] of [
    ['a line that is no entry', '# tokens\nada:YWRh\n\nbob\n', `${FORM}; line 4 is not of that form`],
    ['a comment behind an entry', 'ada:YWRh # ada', `${FORM}; line 1 is not of that form`],
    ['two entries on a line', 'ada:YWRh,bob:Ym9i', `${FORM}; line 1 is not of that form`],
    ['an owner with U+0000, which no store could keep', 'a\0da:YWRh', `${FORM}; line 1 is not of that form`],
    ['text that is not UTF-8', Buffer.from('ad\xe0:YWRh', 'latin1'), 'takes a file in UTF-8, and this one is not'],
    ['UTF-16', Buffer.from('ada:YWRh', 'utf16le'), `${FORM}; line 1 is not of that form`],
    ['nothing but comments', '# ada:YWRh\n', 'takes at least one owner:token; there is none'],
    ['16 MiB that are no entry', 'é'.repeat(2 ** 23), `${FORM}; line 1 is not of that form`],
    ['an empty file', '', 'takes at least one owner:token; there is none'],
  ] as const) {
    test(`refuses ${what}`, (t) => {
      assert.throws(() => tokensOfFile(t, content), new SettingError('PLANT_STORE_TOKENS_FILE', problem))
    })
  }
})

test('PLANT_STORE_TOKENS is read in time linear in its length', async () => {
  for (const [begin, piece, end] of [
    ['', ',', ''],
    ['', ' ', 'x'],
    ['', ':', '!'],
    ['', ':a', '!'],
    ['a:', 'a', '!'],
    ['a:a', '=', '!'],
    ['', 'a', ''],
    ['', 'a:a,', ''],
  ] as const) {
    const entries = begin + piece.repeat(2 ** 17 / piece.length) + end
    const read = (): void => assert.throws(() => tokenList('PLANT_STORE_TOKENS').parse(entries), SettingError)
    // Linear time is less than a third of this; quadratic time is 16 s.
    assert.ok((await cpuTime(read, 120_000)) < 120_000, piece)
  }
})
