import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { suite, test } from 'node:test'
import { jsonResponse, respond } from '../../../src/http/respond.ts'
import { createDocument } from '../../../src/standalone/paths/program-paths.ts'
import { ask, assertAnswer, jsonAnswer } from '../../support/program/program-paths.ts'
import { serve } from '../../support/wire/service.ts'

const VALUE = { name: 'Fougère' }
const HASH = createHash('sha256').update(JSON.stringify(VALUE)).digest('base64url')
const ETAG = `"${HASH}"`

const get = createDocument(jsonResponse(VALUE))

suite('If-None-Match', () => {
  const known = [ETAG, `W/${ETAG}`, `${ETAG}, "other"`, `W/"other" ,\t${ETAG}`, `"a,b",,${ETAG}`, '*']
  const other = ['', '"other"', 'W/"other", "more"', `"${HASH}-gzip"`, `"x${HASH}"`, HASH, '"*"', '*, "other"']
  for (const [status, values] of [
    [304, known],
    [200, other],
  ] as const) {
    for (const value of values) {
      test(`${value} is answered ${status}`, () => {
        const request = Object.assign(new IncomingMessage(new Socket()), { headers: { 'if-none-match': value } })
        const { headers, ...found } = get(request)
        assert.deepEqual([found.status, found.body === undefined, headers], [status, status === 304, ['ETag', ETAG]])
      })
    }
  }
})

test('a document comes whole through what wraps the response', async (t) => {
  const server = await serve(t, (request, response) => {
    const write = response.write.bind(response)
    Object.assign(response, { write: (piece: string) => write(piece) })
    void respond(request, response, get(request))
  })
  await assertAnswer(ask(server, '/'), jsonAnswer(200, VALUE, { etag: ETAG }))
})
