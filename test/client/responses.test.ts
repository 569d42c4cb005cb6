import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { replaceBody, replaceResponse, respond, startFaultyProxy } from '../support/faulty-proxy.ts'
import { getPort, serve } from '../support/service.ts'
import { createStoreWithPlants } from '../support/plant-list.ts'

const LIST = [{ id: 1, name: 'Fern' }]

/** The expected error for a response that can't have come from the service. */
const unexpected = (status: number, isOutcomeUnknown: boolean): object => ({
  name: 'PlantStoreError',
  status,
  error: undefined,
  message: `unexpected response (status ${status}): it isn't from plant-store, or it's incomplete`,
  isOutcomeUnknown,
})

suite('a list is rejected', () => {
  for (const [what, fault] of [
    ['an HTML page', respond(200)],
    ['an empty body', respond(200, '')],
    ['a list without ids', respond(200, [{ name: 'Fern' }])],
    ['more plants than requested', respond(200, [...LIST, { id: 2, name: 'Moss' }, { id: 3, name: 'Ivy' }])],
    ['plants before the cursor', respond(200, [{ id: 0, name: 'Fern' }])],
    ['a truncated list', replaceBody((body) => body.slice(0, -1))],
  ] as const) {
    test(`if the response has ${what}`, async (t) => {
      const proxy = await startFaultyProxy(t, [fault], createStoreWithPlants(3))
      await assert.rejects(proxy.connect().listPage({ after: 0, limit: 2 }), unexpected(200, false))
      assert.equal(proxy.requests.length, 1)
    })
  }
})

suite('a write rejects with an unknown outcome', () => {
  for (const [what, status, body] of [
    ['an HTML page', 200, '<html>'],
    ['no body', 204, ''],
    ['null', 200, 'null'],
    ['another tag', 200, { name: 'Fern', tag: 'indoor' }],
    ['201', 201, { name: 'Fern' }],
  ] as const) {
    test(`if the response to a create has ${what}`, async (t) => {
      const proxy = await startFaultyProxy(t, [replaceResponse(status, body)])
      await assert.rejects(proxy.connect().create({ id: 1, name: 'Fern' }), unexpected(status, true))
      assert.equal(proxy.requests.length, 1)
    })
  }

  test('if the response to a delete has a body', async (t) => {
    const proxy = await startFaultyProxy(t, [respond(200)])
    await assert.rejects(proxy.connect().delete(1), unexpected(200, true))
  })

  test('if the service responds with 500', async (t) => {
    const failure = respond(500, { error: 50000, message: 'internal' }, { 'X-Request-Id': 'r1' })
    const proxy = await startFaultyProxy(t, [failure])
    await assert.rejects(proxy.connect().create({ id: 1, name: 'Fern' }), {
      status: 500,
      error: 50000,
      message: 'internal',
      requestId: 'r1',
      isOutcomeUnknown: true,
    })
    assert.equal(proxy.requests.length, 1)
  })
})

suite('an error response', () => {
  for (const [what, status, body, error] of [
    ['from the service', 413, { error: 41300, message: 'too large' }, 41300],
    ['about an unsupported transfer coding', 501, { error: 50100, message: 'coding' }, 50100],
    ['with a code for another status', 413, { error: 50000, message: 'internal' }, undefined],
    ['without a message', 413, { error: 41300 }, undefined],
    ['that is null', 413, 'null', undefined],
  ] as const) {
    test(`${what} has ${error === undefined ? 'no code' : 'its code'}, and a known outcome`, async (t) => {
      const proxy = await startFaultyProxy(t, [respond(status, body)])
      await assert.rejects(proxy.connect().create({ id: 1, name: 'Fern' }), { status, error, isOutcomeUnknown: false })
    })
  }
})

test('redirects are not followed', async (t) => {
  let requestCount = 0
  const other = await serve(t, (_, response) => {
    requestCount++
    response.end('[]')
  })
  const statuses = [301, 302, 303, 307, 308]
  const headers = { Location: `http://localhost:${getPort(other)}/plants` }
  const proxy = await startFaultyProxy(
    t,
    [...statuses, ...statuses].map((status) => respond(status, '', headers)),
  )
  for (const status of statuses) await assert.rejects(proxy.connect().listPage(), unexpected(status, false))
  for (const status of statuses) await assert.rejects(proxy.connect().delete(1), unexpected(status, false))
  // Browsers hide the status of a redirect.
  const fetch = (): Promise<Response> => Promise.resolve(Response.error())
  await assert.rejects(proxy.connect({ fetch, retries: Infinity }).delete(1), unexpected(0, false))
  assert.deepEqual([requestCount, proxy.requests.length], [0, 10])
})
