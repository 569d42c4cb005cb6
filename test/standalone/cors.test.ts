import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { serveInProcess, WRITER_TOKEN } from '../support/standalone-server.ts'

const ORIGIN = 'https://app.example'
const EXPOSED = 'Link, WWW-Authenticate, Retry-After, X-Request-Id, Allow'

/** Returns the status and the header fields that concern CORS. */
async function request(url: string, origin: string | undefined, init: RequestInit = {}): Promise<object> {
  const headers = new Headers(init.headers)
  if (origin !== undefined) headers.set('Origin', origin)
  const response = await fetch(url, { ...init, headers })
  const fields = [...response.headers].filter(([name]) => name === 'vary' || name.startsWith('access-control-'))
  return { status: response.status, ...Object.fromEntries(fields) }
}

const preflight = (url: string, origin: string): Promise<object> =>
  request(url, origin, { method: 'OPTIONS', headers: { 'Access-Control-Request-Method': 'POST' } })

suite('CORS', () => {
  test('is off by default', async (t) => {
    const { url } = await serveInProcess(t)
    assert.deepEqual(await request(`${url}/plants`, ORIGIN), { status: 401 })
    assert.deepEqual(await preflight(`${url}/plants`, ORIGIN), { status: 204 })
    assert.deepEqual(await preflight(`${url}/unknown`, ORIGIN), { status: 404 })
  })

  test('with a list, allows its origins on every response, and tells caches about it', async (t) => {
    const { url } = await serveInProcess(t, { PLANT_STORE_CORS_ORIGINS: `http://localhost:5173, ${ORIGIN}` })
    const allowed = {
      vary: 'Origin',
      'access-control-allow-origin': ORIGIN,
      'access-control-expose-headers': EXPOSED,
    }
    const headers = { Authorization: `Bearer ${WRITER_TOKEN}` }
    assert.deepEqual(await request(`${url}/plants`, ORIGIN, { headers }), { status: 200, ...allowed })
    assert.deepEqual(await request(`${url}/plants`, ORIGIN), { status: 401, ...allowed })
    assert.deepEqual(await request(`${url}/unknown`, ORIGIN), { status: 404, ...allowed })
    assert.deepEqual(await request(`${url}/livez`, ORIGIN), { status: 200, ...allowed })
    for (const origin of ['https://other.example', 'null', `${ORIGIN}:443`, undefined]) {
      assert.deepEqual(await request(`${url}/plants`, origin), { status: 401, vary: 'Origin' })
    }
  })

  test('answers preflights from an allowed origin without a token, for unknown paths too', async (t) => {
    const { url } = await serveInProcess(t, { PLANT_STORE_CORS_ORIGINS: '*' })
    for (const path of ['/plants', '/plants/1', '/livez', '/unknown']) {
      assert.deepEqual(await preflight(url + path, ORIGIN), {
        status: 204,
        'access-control-allow-origin': '*',
        'access-control-expose-headers': EXPOSED,
        'access-control-allow-methods': 'GET, HEAD, POST, DELETE',
        'access-control-allow-headers': '*, Authorization',
        'access-control-max-age': '7200',
      })
    }
  })

  test('does not answer preflights from other origins', async (t) => {
    const { url } = await serveInProcess(t, { PLANT_STORE_CORS_ORIGINS: ORIGIN })
    assert.deepEqual(await preflight(`${url}/unknown`, 'https://other.example'), { status: 404, vary: 'Origin' })
    assert.deepEqual(await preflight(`${url}/plants`, 'https://other.example'), { status: 204, vary: 'Origin' })
  })
})
