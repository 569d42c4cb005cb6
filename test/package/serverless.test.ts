import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { programsOf, readDocument } from '../support/package/documents.ts'
import { HOST_EXAMPLES, isProgram, startExample } from '../support/package/examples.ts'
import { createProject } from '../support/package/packed.ts'
import { skipWithoutPeers } from '../support/package/peers.ts'
import { del, get, post, sendTo } from '../support/wire/service.ts'

/** A function as AWS Lambda calls it. */
type Handler = (event: object, context: object) => Promise<{ statusCode: number; body: string }>

test('the function for AWS Lambda answers, and sees no field twice', async (t) => {
  const example = HOST_EXAMPLES.find(({ heading, code }) => heading === 'AWS Lambda' && !isProgram(code))!
  const project = await createProject(t)
  await writeFile(join(project, 'handler.mjs'), example.code)
  const { handler } = (await import(pathToFileURL(join(project, 'handler.mjs')).href)) as { handler: Handler }

  async function call(headers: Readonly<Record<string, string>>, body?: string): Promise<[number, string]> {
    const method = body === undefined ? 'GET' : 'POST'
    const requestContext = { http: { method, sourceIp: '127.0.0.1' } }
    const event = { version: '2.0', rawPath: '/plants', rawQueryString: '', headers, requestContext, body }
    const response = await handler(event, {})
    return [response.statusCode, response.body]
  }

  const authorization = 'Bearer a-long-random-token'
  const plant = '{"id":9007199254740993,"name":"Fern"}'
  assert.deepEqual(await call({ authorization, 'content-type': 'application/json' }, plant), [200, '{"name":"Fern"}'])
  assert.deepEqual(await call({ authorization }), [200, '[{"name":"Fern"}]'])
  assert.deepEqual(await call({ authorization: `${authorization},${authorization}` }), [
    401,
    '{"error":40101,"message":"The bearer token is malformed or not known here."}',
  ])
  const [status] = await call({ authorization, 'content-type': 'application/json,application/json' }, plant)
  assert.equal(status, 415)
})

test(
  'the function for Cloud Functions keeps ids exact, and JSON that is malformed is refused before it',
  { skip: skipWithoutPeers() },
  async (t) => {
    const example = HOST_EXAMPLES.find(({ heading, code }) => heading === 'Cloud Functions' && !isProgram(code))!
    const { port } = await startExample(
      t,
      `import { getTestServer } from '@google-cloud/functions-framework/testing'
     ${example.code}
     getTestServer('plants').listen(3000)`,
    )
    const [plant, token] = ['{"id":9007199254740993,"name":"Fern"}', 'a-long-random-token']
    assert.equal((await sendTo(port, post(token, plant))).body, '{"name":"Fern"}')
    assert.equal((await sendTo(port, del(token, 9007199254740993n))).status, 204)
    const malformed = await sendTo(port, post(token, '{'))
    assert.deepEqual([malformed.status, malformed.headers['content-type']], [400, 'text/html; charset=utf-8'])
  },
)

test('the example in which Express keeps the bytes keeps ids exact', async (t) => {
  const { code } = programsOf(readDocument('docs/hosts.md')).find(({ code }) => code.includes('rawBody = '))!
  const { port } = await startExample(t, code)
  const [plant, token] = ['{"id":9007199254740993,"name":"Fern"}', 'a-long-random-token']
  assert.equal((await sendTo(port, { ...post(token, plant), path: '/api/plants' })).body, '{"name":"Fern"}')
  assert.equal(
    (await sendTo(port, { ...get(token), method: 'DELETE', path: '/api/plants/9007199254740993' })).status,
    204,
  )
})
