import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { test } from 'node:test'
import { createListener, needsChromium, openPage } from '../support/page/browser.ts'
import { skipWithoutPeers } from '../support/package/peers.ts'
import { TOKEN } from '../support/program/program.ts'

const BUNDLE = new URL('../peers/node_modules/swagger-ui-dist/swagger-ui-bundle.js', import.meta.url)

const PAGE = `<!DOCTYPE html>
  <div id="ui"></div>
  <script src="bundle.js"></script>
  <script>
    const ui = SwaggerUIBundle({
      url: '/api/v1/openapi.json',
      dom_id: '#ui',
      docExpansion: 'full',
      tryItOutEnabled: true,
      onComplete: () => ui.preauthorizeApiKey('bearerToken', '${TOKEN}'),
    })
  </script>`

test(
  'Swagger UI sends requests below the path prefix of the description',
  {
    skip: skipWithoutPeers() || needsChromium,
  },
  async (t) => {
    const plants = createListener()
    const bundle = await readFile(BUNDLE)
    const page = await openPage(t, (request: IncomingMessage, response: ServerResponse) => {
      if (request.url === '/') response.setHeader('Content-Type', 'text/html').end(PAGE)
      else if (request.url === '/bundle.js')
        response.setHeader('Content-Type', 'text/javascript; charset=utf-8').end(bundle)
      else {
        // A reverse proxy removes the prefix in the same way.
        request.url = request.url!.replace('/api/v1', '')
        plants(request, response)
      }
    })
    const operation = '#operations-plants-listPlants'
    const button = await page.page.waitForSelector(`${operation} .execute`)
    await button!.evaluate((element) => (element as unknown as { click(): void }).click())
    await page.page.waitForSelector(`${operation} .live-responses-table .response .response-col_status`)
    const url = await page.text(`${operation} .request-url`)
    assert.ok(url.includes(`${page.url}/api/v1/plants?`), url)
    assert.match(await page.text(`${operation} .live-responses-table .response .response-col_status`), /^200/)
  },
)
