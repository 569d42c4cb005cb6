import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { suite, test } from 'node:test'
import { programDescription } from '../../../src/standalone/paths/program-description.ts'
import { serveWithAdmin } from '../../support/program/in-process-program.ts'
import { ask, assertAnswer, jsonAnswer, serveProgramPaths } from '../../support/program/program-paths.ts'
import { scrape, startWithMetrics } from '../../support/program/metrics.ts'

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

test('HEAD is answered like GET, without a body, and another method is not allowed', async (t) => {
  const server = await serveProgramPaths(t)
  await assertAnswer(ask(server, '/livez', 'HEAD'), { ...LIVE, body: '' })
  const message = 'This resource does not have that method; Allow lists those that it has.'
  const expected = jsonAnswer(405, { error: 40500, message }, { allow: 'GET, HEAD, OPTIONS' })
  await assertAnswer(ask(server, '/livez', 'POST'), expected)
})

for (const path of ['/livez', '/livez?verbose', 'http://host/livez', '/%6Civez', '/livez?a=/b']) {
  test(`${path} says that the program lives`, async (t) => {
    await assertAnswer(ask(await serveProgramPaths(t), path), LIVE)
  })
}

for (const path of ['/livez/', '//livez', '*/livez', '/Livez', '/%2Flivez', '/livez%', '/', '/undefined']) {
  test(`${path} is left to the plants`, async (t) => {
    const message = 'There is nothing at this path. The plants are at /plants.'
    await assertAnswer(ask(await serveProgramPaths(t), path), jsonAnswer(404, { error: 40400, message }))
  })
}

test('the header fields must be sound', async (t) => {
  const answer = ask(await serveProgramPaths(t), '/livez', 'GET', ['Host', 'a', 'Host', 'a'])
  await assertAnswer(answer, jsonAnswer(400, { error: 40000, message: 'The request has more than one Host field.' }))
})

suite('the admin port', () => {
  test('has the probes and the metrics, which are nowhere else, and nothing else', async (t) => {
    const { port, admin } = await serveWithAdmin(t)
    const urls = ['/livez', '/readyz', '/metrics', '/plants', '/openapi.json', '/'].map((path) => admin + path)
    const responses = await Promise.all([...urls, `http://127.0.0.1:${port}/metrics`].map((url) => fetch(url)))
    assert.deepEqual(
      responses.map(({ status }) => status),
      [200, 200, 200, 404, 404, 404, 404],
    )
    assert.equal(responses[2]!.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
    assert.deepEqual(await responses[3]!.json(), {
      error: 40400,
      message: 'There is nothing at this path. Here are /livez, /readyz and /metrics.',
    })
    const post = await fetch(`${admin}/metrics`, { method: 'POST' })
    assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD, OPTIONS'])
  })

  test('may have a host of its own, and says, in the metrics too, that the program shuts down', async (t) => {
    const environment = { PLANT_STORE_ADMIN_HOST: 'localhost', PLANT_STORE_DRAIN_DELAY_MS: '60000' }
    const { program, admin } = await startWithMetrics(t, environment)
    assert.match(admin, /^http:\/\/localhost:/)
    assert.match(await scrape(admin), /^plant_store_ready 1$/m)
    program.child.kill('SIGTERM')
    await program.logged('drain-delay')
    assert.match(await scrape(admin), /^plant_store_ready 0$/m)
    assert.equal((await fetch(`${admin}/readyz`)).status, 503)
    assert.equal((await fetch(`${admin}/livez`)).status, 200)
  })
})
