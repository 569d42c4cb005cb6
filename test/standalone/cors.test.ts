import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { openPage, type PlantPage, serveListener } from '../support/browser.ts'
import { needsChromium } from '../support/chromium.ts'
import { startProgram, TOKEN } from '../support/program.ts'

/** What a page may read of a response; `refused` if the browser keeps it from the page. */
type Read = { readonly status: number; readonly fields: Record<string, string>; readonly body: unknown } | 'refused'

/** Opens an empty page on an origin of its own, and the program beside it, which allows that origin or others. */
async function openBoth(t: TestContext, origins?: string): Promise<{ page: PlantPage; url: string }> {
  const other = await serveListener(t, (_, response) => {
    response.setHeader('Content-Type', 'text/html').end('<!doctype html><link rel="icon" href="data:,">')
  })
  const program = await startProgram(t, {
    PLANT_STORE_CORS_ORIGINS: origins ?? other,
    PLANT_STORE_MAX_BODY_BYTES: '64',
    PLANT_STORE_MAX_LIMIT: '1',
  })
  return { page: await openPage(t, other), url: program.url }
}

/** Has the page fetch something. */
function read(page: PlantPage, url: string, options: object = {}, token = TOKEN): Promise<Read> {
  const init = JSON.stringify({ headers: { Authorization: `Bearer ${token}` }, ...options })
  return page.evaluate(`fetch(${JSON.stringify(url)}, ${init}).then(async (response) => {
    const text = await response.text()
    const fields = Object.fromEntries(response.headers)
    return { status: response.status, fields, body: text && JSON.parse(text) }
  }, () => 'refused')`)
}

function post(page: PlantPage, url: string, plant: object, token = TOKEN): Promise<Read> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  return read(page, `${url}/plants`, { method: 'POST', headers, body: JSON.stringify(plant) })
}

suite("a page of another origin, by the browser's own fetch", { skip: needsChromium }, () => {
  test('creates, lists page by page and deletes, with preflights', async (t) => {
    const { page, url } = await openBoth(t)
    for (const id of [1, 2]) {
      const created = await post(page, url, { id, name: 'Fern' })
      assert.ok(created !== 'refused')
      assert.deepEqual([created.status, created.body], [200, { name: 'Fern' }])
    }

    const listed = await read(page, `${url}/plants`)
    assert.ok(listed !== 'refused')
    assert.deepEqual(listed.body, [{ name: 'Fern' }])
    assert.equal(listed.fields['link'], '<?limit=1&after=1>; rel="next"')
    assert.ok('x-request-id' in listed.fields)

    const deleted = await read(page, `${url}/plants/1`, {
      method: 'DELETE',
      headers: { Authorization: `Bearer ${TOKEN}` },
    })
    assert.ok(deleted !== 'refused')
    assert.equal(deleted.status, 204)
  })

  test('reads why a token is refused', async (t) => {
    const { page, url } = await openBoth(t)
    for (const answer of [await read(page, `${url}/plants`, {}, 'guess'), await post(page, url, {}, 'guess')]) {
      assert.ok(answer !== 'refused')
      assert.equal((answer.body as { error: number }).error, 40101)
      assert.equal(answer.fields['www-authenticate'], 'Bearer realm="plant-store", error="invalid_token"')
    }
  })

  test('reads that a body is too large', async (t) => {
    const { page, url } = await openBoth(t)
    const answer = await post(page, url, { id: 1, name: 'x'.repeat(100) })
    assert.ok(answer !== 'refused')
    assert.equal((answer.body as { error: number }).error, 41300)
  })

  test('may be any with *', async (t) => {
    const { page, url } = await openBoth(t, '*')
    const answer = await post(page, url, { id: 1, name: 'Fern' })
    assert.ok(answer !== 'refused')
    assert.equal(answer.status, 200)
  })

  test('gets nothing if its origin is not listed, and its plant is not created', async (t) => {
    const { page, url } = await openBoth(t, 'https://a.example')
    assert.equal(await post(page, url, { id: 1, name: 'Fern' }), 'refused')
    assert.equal(await read(page, `${url}/plants`), 'refused')
    const complaints = page.complaints.splice(0)
    assert.ok(complaints.length > 0 && complaints.every((line) => line.includes('blocked by CORS policy')))

    const { status } = await fetch(`${url}/plants/1`, {
      method: 'DELETE',
      headers: { Authorization: `Bearer ${TOKEN}` },
    })
    assert.equal(status, 404)
  })
})
