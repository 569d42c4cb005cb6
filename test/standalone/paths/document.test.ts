import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { Server } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { jsonResponse, respond } from '../../../src/http/respond.ts'
import { createDocument } from '../../../src/standalone/paths/program-paths.ts'
import { ask, assertAnswer, jsonAnswer } from '../../support/program/program-paths.ts'
import { RawConnection } from '../../support/wire/raw-connection.ts'
import { portOf, serve } from '../../support/wire/service.ts'

const VALUE = { name: 'Fougère' }
const ETAG = `"${createHash('sha256').update(JSON.stringify(VALUE)).digest('base64url')}"`
const WHOLE = jsonAnswer(200, VALUE, { etag: ETAG })
const NOT_MODIFIED = { status: 304, headers: { etag: ETAG }, body: '' }

function serveDocument(t: TestContext): Promise<Server> {
  const get = createDocument(jsonResponse(VALUE))
  return serve(t, (request, response) => void respond(request, response, get(request)))
}

suite('is not sent to a client that has it', () => {
  const rows: readonly [name: string, ...fields: string[]][] = [
    ['its ETag', ETAG],
    ['its ETag, weak', `W/${ETAG}`],
    ['a list that begins with it', `${ETAG}, "other"`],
    ['a list that ends with it', `W/"other" ,\t${ETAG}`],
    ['a list with a comma in a tag', `"a,b",,${ETAG}`],
    ['two fields', '"other"', ETAG],
    ['any', '*'],
  ]
  for (const [name, ...values] of rows) {
    test(name, async (t) => {
      const server = await serveDocument(t)
      const fields = values.flatMap((value) => ['If-None-Match', value])
      for (const method of ['GET', 'HEAD']) await assertAnswer(ask(server, '/', method, fields), NOT_MODIFIED)
    })
  }
})

suite('is sent to a client that has another', () => {
  const hash = ETAG.slice(1, -1)
  for (const value of ['', '"other"', 'W/"other", "more"', `"${hash}-gzip"`, `"x${hash}"`, hash, '"*"', '*, "other"']) {
    test(`If-None-Match: ${value}`, async (t) => {
      await assertAnswer(ask(await serveDocument(t), '/', 'GET', ['If-None-Match', value]), WHOLE)
    })
  }

  test('and to HEAD, without its body', async (t) => {
    const answer = ask(await serveDocument(t), '/', 'HEAD', ['If-None-Match', '"other"'])
    await assertAnswer(answer, { ...WHOLE, body: '' })
  })
})

test('a 304 ends with its header, and the connection goes on', async (t) => {
  const connection = await RawConnection.open(portOf(await serveDocument(t)))
  const request = `GET / HTTP/1.1\r\nHost: plants\r\nIf-None-Match: ${ETAG}\r\n`
  const bytes = await connection.send(`${request}\r\n${request}Connection: close\r\n\r\n`).closed
  const [first, second, rest] = bytes.replace(/Date: .*\r\n/g, '').split('\r\n\r\n')
  assert.equal(first, `HTTP/1.1 304 Not Modified\r\nETag: ${ETAG}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5`)
  assert.equal(second, `HTTP/1.1 304 Not Modified\r\nETag: ${ETAG}\r\nConnection: close`)
  assert.equal(rest, '')
})

test('comes whole through what wraps the response', async (t) => {
  const get = createDocument(jsonResponse(VALUE))
  const server = await serve(t, (request, response) => {
    const write = response.write.bind(response)
    Object.assign(response, { write: (piece: string) => write(piece) })
    void respond(request, response, get(request))
  })
  await assertAnswer(ask(server, '/'), WHOLE)
})
