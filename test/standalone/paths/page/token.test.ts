import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Dialog } from 'puppeteer-core'
import { createListener, openAsAda, openPage, serveListener } from '../../../support/page/browser.ts'
import { needsChromium } from '../../../support/page/chromium.ts'
import { startProgram, TOKEN } from '../../../support/program/program.ts'

const NONE = 'Enter a token first: then its plants stand here.'

suite('the token', { skip: needsChromium }, () => {
  test('of the address is taken, and is gone from the address', async (t) => {
    const page = await openAsAda(t)
    assert.equal(page.page.url(), `${page.url}/`)
    assert.equal(await page.evaluate('location.href'), `${page.url}/`)
    assert.match(await page.text('#access'), /^may read/)
  })

  for (const [answer, owner] of [
    ['accept', 'bob'],
    ['dismiss', 'ada'],
  ] as const) {
    test(
      `of an address that is entered while another is in use is asked about: ${answer}`,
      { timeout: 60_000 },
      async (t) => {
        const page = await openAsAda(t, { tokens: { [TOKEN]: 'ada', 'a+/~b==': 'bob' } })
        await page.create('1', 'Fern')
        await page.waitFor('#plants', /Fern/)
        const asked = new Promise<Dialog>((resolve) => page.page.once('dialog', resolve))
        await page.evaluate(`location.hash = 'token=a%2b/~b=='`)
        await (await asked)[answer]()
        assert.equal(await page.evaluate('location.href'), `${page.url}/`)
        await page.press('#list', 'List')
        await page.waitFor('#list .result', owner === 'ada' ? /1 plant\./ : /0 plants\./)
      },
    )
  }

  test('is not replaced by a page of another origin that opened this one', async (t) => {
    const opener = await openPage(t, (_request, response) => response.setHeader('Content-Type', 'text/html').end())
    const url = await serveListener(t, createListener())
    await opener.evaluate(`void (globalThis.opened = open('${url}'))`)
    await opener.page.browserContext().waitForTarget((target) => target.url() === `${url}/`)
    await opener.page.waitForFunction('opened.closed', { timeout: 60_000 })
  })

  test('stays nowhere but in memory, whatever is done with it', async (t) => {
    const program = await startProgram(t, { PLANT_STORE_ACCESS_LOG: '1' })
    const page = await openAsAda(t, program.url)
    await page.create('1', 'Fern')
    await page.fill('#delete', 'Id', '1')
    await page.press('#delete', 'Delete')
    await page.waitFor('#delete .result', /Deleted/)
    await page.waitFor('#none', /No plants yet/)
    await page.fill('#token-form', 'Token', TOKEN)
    await page.press('#token-form', 'Use token')
    await page.waitFor('#access', /may/)

    const places = await page.evaluate<Record<string, unknown>>(`(async () => ({
      address: location.href,
      history: [history.state, document.referrer, navigation.entries().map(({ url }) => url)],
      storage: [{ ...localStorage }, { ...sessionStorage }, document.cookie],
      databases: [await indexedDB.databases(), await caches.keys()],
      requests: performance.getEntriesByType('resource').map(({ name }) => name),
      document: document.documentElement.outerHTML,
      fields: Array.from(document.querySelectorAll('input'), ({ value }) => value),
      globals: Object.values(window).filter((value) => typeof value === 'string'),
    }))()`)
    for (const [place, content] of Object.entries(places)) assert.ok(!JSON.stringify(content).includes(TOKEN), place)
    assert.ok(!page.console.join('\n').includes(TOKEN))
    await program.end()
    assert.equal(program.stderr.all.filter((line) => line.includes('"DELETE"')).length, 1)
    assert.ok(!program.stderr.all.join('\n').includes(TOKEN))
  })

  test('is asked for first if there is none', async (t) => {
    const page = await openPage(t)
    assert.equal(await page.text('#none'), NONE)
    assert.equal(await page.text('#access'), 'none yet')
    await page.waitFor('#service', /^ready$/)
  })

  for (const typed of [TOKEN, ` Bearer ${TOKEN} `]) {
    test(`typed as "${typed}" is taken out of its field`, async (t) => {
      const page = await openPage(t)
      await page.fill('#token-form', 'Token', typed)
      await page.page.keyboard.press('Enter')
      await page.waitFor('#none', /No plants yet/)
      assert.equal(await page.evaluate(`document.activeElement.id + document.activeElement.value`), 'token')
    })
  }

  for (const typed of ['ein schlüssel', 'a b', 'a=b', '令牌']) {
    test(`typed as "${typed}" is refused by the page itself`, async (t) => {
      const page = await openPage(t)
      await page.fill('#token-form', 'Token', typed)
      await page.press('#token-form', 'Use token')
      await page.waitFor('#token-error', /^A token has letters, digits and -\._~\+\/ only, then perhaps "="\.$/)
    })
  }

  test('that is refused is so in the words of the service, beside its field', async (t) => {
    const page = await openPage(t, {}, {}, '#token=b3RoZXI')
    await page.waitFor('#token-error', /^The bearer token is malformed or not known here\.$/)
    await page.waitFor('#list .result', /^401 Unauthorized: The bearer token is malformed or not known here\.$/)
    assert.equal(await page.text('#access'), 'refused')
  })

  test('that is missing is asked for in the words of the service', async (t) => {
    const page = await openPage(t)
    await page.press('#list', 'List')
    await page.waitFor('#token-error', /^A bearer token is needed: send "Authorization: Bearer <token>"\.$/)
  })

  test('is forgotten on demand, with all that it brought', async (t) => {
    const page = await openAsAda(t)
    await page.create('1', 'Fern')
    await page.waitFor('#plants', /Fern/)
    await page.press('#token-form', 'Forget it')
    assert.deepEqual(await page.plants(), [])
    assert.equal(await page.text('#none'), NONE)
    await page.press('#list', 'List')
    await page.waitFor('#list .result', /^401/)
  })

  test('is not kept by a reload', async (t) => {
    const page = await openAsAda(t)
    await page.page.reload()
    assert.equal(await page.text('#none'), NONE)
  })
})
