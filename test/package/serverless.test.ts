import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { programsOf, readDocument } from '../support/package/documents.ts'
import { HOST_EXAMPLES, startExample } from '../support/package/examples.ts'
import { createProject } from '../support/package/packed.ts'
import { skipWithoutPeers } from '../support/package/peers.ts'
import { bearer, del, post, sendTo } from '../support/wire/service.ts'

const [PLANT, TOKEN] = ['{"id":9007199254740993,"name":"Fern"}', 'a-long-random-token']
const [LAMBDA, CLOUD_FUNCTION] = ['AWS Lambda', 'Cloud Functions'].map(
  (name) => HOST_EXAMPLES.find(({ heading }) => heading === name)!.code,
)

/** A function as AWS Lambda calls it. */
type Handler = (event: object, context: object) => Promise<{ statusCode: number; body: string }>

test('the function for AWS Lambda answers, and sees no field twice', async (t) => {
  const project = await createProject(t, { 'handler.mjs': LAMBDA! })
  const { handler } = (await import(pathToFileURL(join(project, 'handler.mjs')).href)) as { handler: Handler }

  async function call(headers: Readonly<Record<string, string>>, body?: string): Promise<[number, string]> {
    const requestContext = { http: { method: body === undefined ? 'GET' : 'POST', sourceIp: '127.0.0.1' } }
    const event = { version: '2.0', rawPath: '/plants', rawQueryString: '', headers, requestContext, body }
    const response = await handler(event, {})
    return [response.statusCode, response.body]
  }

  const [authorization, type] = [`Bearer ${TOKEN}`, 'application/json']
  assert.deepEqual(await call({ authorization, 'content-type': type }, PLANT), [200, '{"name":"Fern"}'])
  assert.deepEqual(await call({ authorization }), [200, '[{"name":"Fern"}]'])
  assert.equal((await call({ authorization: `${authorization},${authorization}` }))[0], 401)
  assert.equal((await call({ authorization, 'content-type': `${type},${type}` }, PLANT))[0], 415)
})

test(
  'the function for Cloud Functions keeps ids exact, and JSON that is malformed is refused before it',
  { skip: skipWithoutPeers() },
  async (t) => {
    const { port } = await startExample(
      t,
      `import { getTestServer } from '@google-cloud/functions-framework/testing'
       ${CLOUD_FUNCTION}
       getTestServer('plants').listen(3000)`,
    )
    assert.equal((await sendTo(port, post(TOKEN, PLANT))).body, '{"name":"Fern"}')
    assert.equal((await sendTo(port, del(TOKEN, 9007199254740993n))).status, 204)
    const malformed = await sendTo(port, post(TOKEN, '{'))
    assert.deepEqual([malformed.status, malformed.headers['content-type']], [400, 'text/html; charset=utf-8'])
  },
)

test('the example in which Express keeps the bytes keeps ids exact', async (t) => {
  const { code } = programsOf(readDocument('docs/hosts.md')).find(({ code }) => code.includes('rawBody = '))!
  const { port } = await startExample(t, code)
  assert.equal((await sendTo(port, { ...post(TOKEN, PLANT), path: '/api/plants' })).body, '{"name":"Fern"}')
  const path = '/api/plants/9007199254740993'
  assert.equal((await sendTo(port, { method: 'DELETE', path, fields: bearer(TOKEN) })).status, 204)
})
