import { createHash } from 'node:crypto'
import { suite, test } from 'node:test'
import { programDescription } from '../../../src/standalone/paths/program-description.ts'
import { ask, assertAnswer, jsonAnswer, serveProgramPaths } from '../../support/program/program-paths.ts'

const LIVE = jsonAnswer(200, { status: 'live' })

test('/openapi.json is the interface description, with its hash', async (t) => {
  const etag = `"${createHash('sha256').update(JSON.stringify(programDescription)).digest('base64url')}"`
  const expected = jsonAnswer(200, programDescription, { etag })
  await assertAnswer(ask(await serveProgramPaths(t), '/openapi.json'), expected)
})

test('If-None-Match does not matter to another method, nor to a probe', async (t) => {
  const server = await serveProgramPaths(t)
  const fields = ['If-None-Match', '*']
  const headers = { allow: 'GET, HEAD, OPTIONS' }
  await assertAnswer(ask(server, '/openapi.json', 'OPTIONS', fields), { status: 204, headers, body: '' })
  await assertAnswer(ask(server, '/livez', 'GET', fields), LIVE)
})

test('HEAD is answered like GET, without a body', async (t) => {
  await assertAnswer(ask(await serveProgramPaths(t), '/livez', 'HEAD'), { ...LIVE, body: '' })
})

test('another method is not allowed', async (t) => {
  const message = 'This resource does not have that method; Allow lists those that it has.'
  const expected = jsonAnswer(405, { error: 40500, message }, { allow: 'GET, HEAD, OPTIONS' })
  await assertAnswer(ask(await serveProgramPaths(t), '/livez', 'POST'), expected)
})

for (const path of ['/livez?verbose', 'http://host/livez', '/%6Civez', '/livez?a=/b']) {
  test(`${path} is /livez`, async (t) => {
    await assertAnswer(ask(await serveProgramPaths(t), path), LIVE)
  })
}

for (const path of ['/livez/', '//livez', '*/livez', '/Livez', '/%2Flivez', '/livez%', '/', '/undefined']) {
  test(`${path} is left to the plants`, async (t) => {
    const message = 'There is nothing at this path. The plants are at /plants.'
    await assertAnswer(ask(await serveProgramPaths(t), path), jsonAnswer(404, { error: 40400, message }))
  })
}

suite('the header fields must be sound', () => {
  const rows: readonly [name: string, fields: readonly string[], error: number, message: string][] = [
    ['two of Host', ['Host', 'a', 'Host', 'a'], 40000, 'The request has more than one Host field.'],
    [
      'two of Content-Type',
      ['Content-Type', 'a/b', 'Content-Type', 'a/b'],
      40000,
      'The request has more than one Content-Type field.',
    ],
    [
      'another transfer coding',
      ['Transfer-Encoding', 'gzip, chunked'],
      50100,
      'The only transfer coding that is understood here is chunked.',
    ],
    // With Host and Connection, which the client adds. To more, newer Node versions give a 431 of their own.
    [
      '1,000 fields',
      Array.from({ length: 2 * 998 }, (_, i) => (i % 2 === 0 ? 'X' : 'y')),
      43100,
      'The request has too many header fields, or too large ones.',
    ],
  ]
  for (const [name, fields, error, message] of rows) {
    test(name, async (t) => {
      const answer = ask(await serveProgramPaths(t), '/livez', 'GET', fields)
      await assertAnswer(answer, jsonAnswer(Math.trunc(error / 100), { error, message }))
    })
  }
})
