import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { createPlantStore } from '../src/index.ts'
import { send, serve } from './support/wire/service.ts'

test('hands a request for a path that it does not have to the next listener', async (t) => {
  const plants = createPlantStore({ tokens: { token: 'ada' } })
  const server = await serve(
    t,
    createServer((request, response) => plants(request, response, () => response.end('next'))),
  )
  const answers = await Promise.all(
    ['/other', '/plants'].map((path) => send(server, { method: 'GET', path, fields: [] })),
  )
  assert.deepEqual(
    answers.map(({ status, body }) => [status, status === 200 && body]),
    [
      [200, 'next'],
      [401, false],
    ],
  )
})
