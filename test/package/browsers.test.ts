import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { launchChromium, needsChromium } from '../support/page/chromium.ts'
import { codeOf } from '../support/package/documents.ts'
import { startExample, withOwners } from '../support/package/examples.ts'
import { bearer, portOf, sendTo, serve } from '../support/wire/service.ts'

const EXAMPLE = codeOf('docs/hosts.md', 'js', 'Browsers')
const ORIGIN = 'https://app.example'
const FROM_PAGE = ['Origin', ORIGIN]

/** What each response to a page has, beside what the service sends. */
const ALLOWED = {
  'x-powered-by': 'Express',
  'access-control-allow-origin': ORIGIN,
  vary: 'Origin',
  'access-control-expose-headers': 'Allow,Link,Retry-After,WWW-Authenticate',
}

/** Starts the example for pages of an origin. */
async function start(t: TestContext, origin = ORIGIN): Promise<number> {
  return (await startExample(t, withOwners(EXAMPLE).replace(ORIGIN, origin))).port
}

suite('a page of another origin', { timeout: 60_000 }, () => {
  test('may send what a preflight asks for', async (t) => {
    const port = await start(t)
    for (const method of ['POST', 'DELETE']) {
      const asked = ['Access-Control-Request-Method', method, 'Access-Control-Request-Headers', 'authorization']
      const request = { method: 'OPTIONS', path: '/api/plants', fields: [...FROM_PAGE, ...asked] }
      const { status, headers, body } = await sendTo(port, request)
      const fields = {
        ...ALLOWED,
        'access-control-allow-methods': 'GET,HEAD,POST,DELETE',
        'access-control-allow-headers': 'Authorization,Content-Type',
        'access-control-max-age': '7200',
        'content-length': '0',
      }
      assert.deepEqual({ status, headers, body }, { status: 204, headers: fields, body: '' })
    }
  })

  test('may do nothing if its origin is not named', async (t) => {
    const port = await start(t)
    const fields = ['Origin', 'https://evil.example', ...bearer('many')]
    const { headers } = await sendTo(port, { method: 'GET', path: '/api/plants?limit=1', fields })
    assert.equal(headers['access-control-allow-origin'], undefined)
    assert.equal(headers['vary'], 'Origin')
  })
})

/** What a script of a page does, and what it can read of the responses. */
const SCRIPT = (url: string): string => `(async () => {
  const seen = []
  const send = async (path, init = {}) => {
    const response = await fetch('${url}' + path, {
      ...init,
      headers: { Authorization: 'Bearer ada', 'Content-Type': 'application/json', ...init.headers },
    })
    const { status, headers } = response
    seen.push([status, headers.get('Link'), headers.get('WWW-Authenticate'), await response.text()])
  }
  for (const id of ['1', '9007199254740993']) await send('/plants', { method: 'POST', body: '{"id":' + id + ',"name":"Fern"}' })
  await send('/plants?limit=1')
  await send('/plants/9007199254740993', { method: 'DELETE' })
  await send('/plants', { headers: { Authorization: 'Bearer refused' } })
  await send('/plants', { method: 'POST', body: 'a'.repeat(100_000) })
  return seen
})()`

test('a script in a browser may do all of this', { skip: needsChromium, timeout: 60_000 }, async (t) => {
  const pages = await serve(t, (_, response) => response.end('<!doctype html><title>A page</title>'))
  const origin = `http://127.0.0.1:${portOf(pages)}`
  const port = await start(t, origin)
  const browser = await launchChromium()
  t.after(() => browser.close())
  const page = await browser.newPage()
  await page.goto(origin)

  const seen = await page.evaluate(SCRIPT(`http://127.0.0.1:${port}/api`))

  assert.deepEqual(seen, [
    [200, null, null, '{"name":"Fern"}'],
    [200, null, null, '{"name":"Fern"}'],
    [200, '<?limit=1&after=1>; rel="next"', null, '[{"name":"Fern"}]'],
    [204, null, null, ''],
    [
      401,
      null,
      'Bearer realm="plant-store", error="invalid_token"',
      '{"error":40101,"message":"The bearer token is malformed or not known here."}',
    ],
    [413, null, null, '{"error":41300,"message":"The body is larger than 65536 bytes."}'],
  ])
})
