import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { memoryStore, StoreUnavailableError } from '../../../../src/index.ts'
import { createListener, openAsAda } from '../../../support/page/browser.ts'
import { needsChromium } from '../../../support/page/chromium.ts'
import { SteeredPage } from '../../../support/page/steered.ts'
import { captureLog } from '../../../support/program/captured-log.ts'
import { startProgram } from '../../../support/program/program.ts'

suite('while the service is away the page', { skip: needsChromium }, () => {
  test('says so, and goes on when it is back', async (t) => {
    const program = await startProgram(t)
    const page = await openAsAda(t, program.url)
    await page.waitFor('#service', /^ready$/)
    await program.end()

    await page.press('#list', 'List')
    await page.waitFor('#list .result', /^The service cannot be reached\.$/)
    await page.waitFor('#service', /^away, asking again …$/)
    await page.fill('#create', 'Id', '1')
    await page.fill('#create', 'Name', 'Fern')
    await page.press('#create', 'Create')
    await page.waitFor('#create .result', /^The service cannot be reached\. Nobody knows whether this was done: /)

    await startProgram(t, { PORT: String(program.port) })
    await page.waitFor('#service', /^ready$/)
    await page.waitFor('#list .result', /^Page 1: 0 plants/)
    await page.create('1', 'Fern')
    await page.waitFor('#plants', /Fern/)
  })

  test('says that the store is, if it is only that', async (t) => {
    captureLog(t)
    let isAway = true
    const store = memoryStore()
    const ping = (): void => {
      if (isAway) throw new StoreUnavailableError('away')
    }
    const page = await openAsAda(t, { store: { ...store, ping } })
    await page.waitFor('#service', /^not ready, asking again …$/)
    isAway = false
    await page.waitFor('#service', /^ready$/)
  })

  for (const isForgotten of [false, true]) {
    test(`asks again for a list that failed, ${isForgotten ? 'but not once its token is forgotten' : 'by itself'}`, async (t) => {
      const steered = await SteeredPage.open(t)
      const { page } = steered
      const stop = steered.answer('GET /plants', 503, 'application/json', '{"error":50300,"message":"Away."}')
      await steered.send('list')
      await page.waitFor('#list .result', /^503 Service Unavailable: Away\.$/)
      stop()
      if (isForgotten) await page.press('#token-form', 'Forget it')
      const lists = steered.count('GET /plants')
      if (isForgotten) await page.page.waitForResponse((response) => response.url().endsWith('/readyz'))
      else await page.waitFor('#list .result', /^Page 1/)
      await page.page.waitForNetworkIdle({ idleTime: 100 })
      assert.equal(await page.text('#access'), isForgotten ? 'none yet' : 'may read; not seen to write yet')
      assert.equal(steered.count('GET /plants') - lists, isForgotten ? 0 : 1)
    })
  }

  for (const [status, type, body] of [
    [502, 'text/html', '<h1>Bad gateway</h1>'],
    [200, 'text/html', '<h1>Log in first</h1>'],
    [200, 'application/json', 'null'],
  ] as const) {
    test(`shows what a proxy answers instead: ${status} with ${body}`, async (t) => {
      const listener = createListener()
      let isAway = false
      const page = await openAsAda(t, (request, response) => {
        if (isAway) response.writeHead(status, { 'Content-Type': type }).end(body)
        else listener(request, response)
      })
      isAway = true
      await page.press('#list', 'List')
      await page.waitFor('#list .result', /: this response is not from plant-store\.$/)
      assert.equal(await page.text('#list + .exchange .response'), `Content-Type: ${type}\n\n${body}`)
    })
  }

  test('takes a response that is cut for none', async (t) => {
    const listener = createListener()
    let isCut = false
    const page = await openAsAda(t, (request, response) => {
      if (!isCut || !request.url!.startsWith('/plants')) return listener(request, response)
      response.write('[{"name":"Fern"')
      response.destroy()
    })
    isCut = true
    await page.press('#list', 'List')
    await page.waitFor('#list .result', /^The service cannot be reached\.$/)
    await page.waitFor('#service', /^ready$/)
  })
})
