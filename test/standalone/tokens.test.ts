import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { suite, test } from 'node:test'
import { digestToken } from '../../src/http/authentication.ts'
import { parseTokenFile, parseTokenList } from '../../src/standalone/settings/tokens.ts'

const DIGEST = createHash('sha256').update('YWRh').digest('hex')
const FORMAT =
  'must be owner:token or owner:sha256=<64 hexadecimal digits>, followed by " read" if the token is read-only'

function parseOne(entry: string): unknown {
  return parseTokenList('TOKENS', entry).get(digestToken('YWRh'))
}

suite('token entries', () => {
  const VALID: readonly (readonly [entry: string, owner: string, access: string])[] = [
    ['ada:YWRh', 'ada', 'write'],
    ['ada:YWRh read', 'ada', 'read'],
    [`ada:sha256=${DIGEST}`, 'ada', 'write'],
    [`ada:sha256=${DIGEST.toUpperCase()} read`, 'ada', 'read'],
    ['urn:ada:YWRh', 'urn:ada', 'write'],
    ['sha256:YWRh', 'sha256', 'write'],
    ['Åda:YWRh', 'Åda', 'write'],
    [' ada:YWRh\n', 'ada', 'write'],
  ]
  for (const [entry, owner, access] of VALID) {
    test(`${JSON.stringify(entry)} gives ${owner} ${access} access`, () => {
      assert.deepEqual(parseOne(entry), { owner, access })
    })
  }

  const INVALID = ['ada', ':YWRh', 'a b:YWRh', '"ada":YWRh', "'ada':YWRh", '#ada:YWRh', 'a\u0007da:YWRh', 'ada:Y|W']
  for (const entry of [...INVALID, 'ada:YWRh write', 'ada:sha256=', 'ada:sha256=12ab', `ada:sha256=${DIGEST}0`, '']) {
    test(`${JSON.stringify(entry)} is rejected without its text`, () => {
      assert.throws(() => parseOne(entry), { message: `TOKENS: entry 1 ${FORMAT}` })
    })
  }

  for (const token of ['', 'undefined', 'null']) {
    test(`the token "${token}" is rejected, even as a digest`, () => {
      const message = 'TOKENS: entry 1 has an empty token, "undefined" or "null"; check for an unset variable'
      const digest = createHash('sha256').update(token).digest('hex')
      assert.throws(() => parseOne(`ada:${token}`), { message })
      assert.throws(() => parseOne(`ada:sha256=${digest}`), { message })
    })
  }

  test('tokens that look like digests are accepted', () => {
    for (let i = 0; i < 500; i++) {
      const token = randomBytes(28 + (i % 8)).toString('hex')
      const tokens = parseTokenList('TOKENS', `ada:${token},sha256:${token}0`)
      assert.equal(tokens.get(digestToken(token))?.owner, 'ada')
      assert.equal(tokens.get(digestToken(`${token}0`))?.owner, 'sha256')
    }
  })

  test('a repeated token is rejected with the number of its entry', () => {
    assert.throws(() => parseOne(`ada:YWRh,bob:Ym9i,eve:sha256=${DIGEST}`), {
      message: 'TOKENS: entry 3 repeats the token of an earlier entry',
    })
  })

  test('an empty entry in a list is rejected', () => {
    assert.throws(() => parseOne('ada:YWRh,,bob:Ym9i'), { message: `TOKENS: entry 2 ${FORMAT}` })
  })
})

suite('token files', () => {
  test('skip empty lines and comments', () => {
    const tokens = parseTokenFile('FILE', '# Tokens\r\n\r\nada:YWRh\r\n  # bob:Ym9i\n\nbob:Ym9i read\n')
    assert.deepEqual(
      [...tokens.values()],
      [
        { owner: 'ada', access: 'write' },
        { owner: 'bob', access: 'read' },
      ],
    )
  })

  test('report the number of an invalid line', () => {
    assert.throws(() => parseTokenFile('FILE', '\n# Tokens\nada YWRh\n'), { message: `FILE: line 3 ${FORMAT}` })
  })

  test('must contain an entry', () => {
    assert.throws(() => parseTokenFile('FILE', '# none\n'), {
      message: 'FILE must contain at least one entry, such as owner:token',
    })
  })
})
