import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { createWebUiListener, skipWithoutChromium, openPage, type WebUiPage } from '../support/page/web-ui-page.ts'
import { skipWithoutPeers } from '../support/package/extra-packages.ts'
import { TOKEN } from '../support/program/program.ts'

const BUNDLE = new URL('../peers/node_modules/swagger-ui-dist/swagger-ui-bundle.js', import.meta.url)

const PAGE = `<!DOCTYPE html>
  <div id="ui"></div>
  <script src="bundle.js"></script>
  <script>
    const ui = SwaggerUIBundle({
      url: '/api/v1/openapi.json',
      dom_id: '#ui',
      deepLinking: true,
      docExpansion: location.hash === '' ? 'full' : 'none',
      tryItOutEnabled: true,
      onComplete: () => ui.preauthorizeApiKey('bearerToken', '${TOKEN}'),
    })
  </script>`

/** Opens Swagger UI, with the standalone server mounted under a path prefix. */
async function openSwaggerUi(t: TestContext, hash?: string): Promise<WebUiPage> {
  const plants = createWebUiListener()
  const bundle = await readFile(BUNDLE)
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === '/') response.setHeader('Content-Type', 'text/html').end(PAGE)
    else if (request.url === '/bundle.js')
      response.setHeader('Content-Type', 'text/javascript; charset=utf-8').end(bundle)
    else {
      // Strips the prefix, as a reverse proxy does.
      request.url = request.url!.replace('/api/v1', '')
      plants(request, response)
    }
  }
  return openPage(t, listener, hash)
}

async function execute(page: WebUiPage, operation: string): Promise<string[]> {
  const response = `${operation} .live-responses-table .response .response-col_status`
  const button = await page.page.waitForSelector(`${operation} .execute`)
  await button!.evaluate((element) => element.click())
  await page.page.waitForSelector(response)
  return [await page.getText(`${operation} .request-url`), await page.getText(response)]
}

suite('Swagger UI', { skip: skipWithoutPeers || skipWithoutChromium }, () => {
  test('sends requests to the path prefix of the loaded OpenAPI description', async (t) => {
    const page = await openSwaggerUi(t)
    const [url = '', status = ''] = await execute(page, '#operations-plants-listPlants')
    assert.ok(url.includes(`${page.url}/api/v1/plants?`), url)
    assert.match(status, /^200/)
  })

  test('shows the id field of deletePlant if a deep link opens the operation', async (t) => {
    const page = await openSwaggerUi(t, '#/plants/deletePlant')
    const operation = '#operations-plants-deletePlant'
    await page.page.locator(`${operation} input[placeholder=id]`).fill('9007199254740993')
    // Swagger UI debounces typing. Moving the focus out of the input applies the value immediately.
    await page.page.keyboard.press('Tab')
    const [url = '', status = ''] = await execute(page, operation)
    assert.ok(url.includes(`${page.url}/api/v1/plants/9007199254740993`), url)
    assert.match(status, /^404/)
  })
})
