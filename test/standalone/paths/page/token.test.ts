import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import {
  serveBlankPage,
  skipWithoutChromium,
  openAsAda,
  openPage,
  serveListener,
  createStoreWithFerns,
  type WebUiPage,
} from '../../../support/page/web-ui-page.ts'
import { startProgram, TOKEN } from '../../../support/program/program.ts'

const NOTICE = 'Using the token from the link'

/** Waits until the web UI shows only the token form. */
async function waitForTokenForm(page: WebUiPage): Promise<void> {
  await page.waitForText('#token-button', /^Enter token$/)
  await page.page.waitForSelector('#token-form:not([hidden])')
  assert.equal(await page.evaluate(`document.querySelector('#plants').hidden`), true)
}

/** Returns the notice that the token came from a link, or an empty string. */
async function findNotice(page: WebUiPage): Promise<string> {
  return (await page.getText('body')).includes(NOTICE) ? NOTICE : ''
}

suite('tokens in the web UI', { skip: skipWithoutChromium }, () => {
  test('the token is marked as coming from a link until it is used to create a plant (login CSRF)', async (t) => {
    const page = await openAsAda(t)
    assert.equal(await findNotice(page), NOTICE)
    await page.goToId('5')
    await page.waitForText('#empty', /above/)
    await page.submitPlant('x', 'Fern')
    await page.waitForText('#new-id-error', /./)
    assert.equal(await findNotice(page), NOTICE)
    await page.createPlant('1', 'Fern')
    assert.equal(await findNotice(page), '')
  })

  test('the token is marked as coming from a link until it is used to delete a plant (login CSRF)', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(3) })
    await fetch(`${page.url}/plants/1`, { method: 'DELETE', headers: { Authorization: `Bearer ${TOKEN}` } })
    await page.clickInRow('1', 'Delete')
    await page.clickInRow('1', 'Confirm')
    await page.waitForText('#message', /doesn't exist/)
    assert.equal(await findNotice(page), NOTICE)
    await page.deletePlant('2')
    assert.equal(await findNotice(page), '')
  })

  test('a token from a link is removed by the Forget button next to the notice (login CSRF)', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(2) })
    await page.clickButton('#link-notice', 'Forget the token from the link')
    await waitForTokenForm(page)
    assert.deepEqual([await findNotice(page), await page.getFocused()], ['', 'token'])
    await page.fillField('#token-form', 'Token', TOKEN)
    await page.clickButton('#token-form', 'Use')
    await page.waitForText('#token-button', /^Token set$/)
    assert.equal(await findNotice(page), '', 'the user typed this one')
  })

  test('the token is not replaced by a token from a link in the same tab unless the user confirms (login CSRF)', async (t) => {
    const page = await openPage(t, { tokens: { [TOKEN]: 'ada', 'a+/~b==': 'bob' } })
    const questions: string[] = []
    let answer: 'accept' | 'dismiss' = 'dismiss'
    page.page.on('dialog', (dialog) => {
      questions.push(dialog.message())
      void dialog[answer]()
    })
    async function follow(hash: string, range: RegExp): Promise<unknown> {
      questions.length = 0
      await page.evaluate(`location.hash = '${hash}'`)
      await page.page.waitForFunction('!location.hash')
      await page.page.waitForSelector('#plants:not([hidden])')
      await page.page.select('#page-size', '10')
      await page.waitForList()
      await page.waitForText('#range', range)
      assert.equal(await page.evaluate('location.href'), `${page.url}/`)
      return [questions.length, await findNotice(page)]
    }
    assert.deepEqual(await follow(`token=${TOKEN}`, /^$/), [0, NOTICE])
    await page.createPlant('1', 'Fern')
    assert.deepEqual(await follow('token=a%2b/~b==', /^Id \u20681\u2069/), [1, ''])
    assert.deepEqual(await follow(`token=${TOKEN}`, /^Id \u20681\u2069/), [0, ''], 'the token in use')
    for (const malformed of ['', '%20', 'a%20b']) {
      assert.deepEqual(await follow(`token=${malformed}`, /^Id \u20681\u2069/), [0, ''], malformed)
    }
    answer = 'accept'
    assert.deepEqual(await follow('token=a%2b/~b==', /^$/), [1, NOTICE])
    assert.deepEqual(await follow(`token=${TOKEN}`, /^Id \u20681\u2069/), [1, NOTICE])
  })

  for (const text of ['', '%20', 'a%20b', '%zz', '%2541', 'ad%C3%A9', `${TOKEN}&a=b`, `${TOKEN}#token=${TOKEN}`]) {
    test(`a malformed token from a link is rejected with an error about the link: "${text}" (login CSRF)`, async (t) => {
      const page = await openPage(t, {}, `#token=${text}`)
      await page.waitForText(
        '#token-error',
        /^The token in the link is malformed: a token can contain only letters, digits and /,
      )
      await waitForTokenForm(page)
      assert.equal(await findNotice(page), '')
      assert.equal(await page.evaluate('location.href'), `${page.url}/`)
      assert.equal(page.countRequests('GET /plants'), 0)
    })
  }

  test('a token from a link is not in the address or in the tab history after navigating away and back (exposure of credentials)', async (t) => {
    const page = await openAsAda(t)
    await page.page.goto(`${page.url}/openapi.json`)
    await page.page.goBack()
    assert.deepEqual(await page.evaluate('navigation.entries().map(({ url }) => url)'), [
      `${page.url}/`,
      `${page.url}/openapi.json`,
    ])
    // If the browser restores the page from its back/forward cache, the token is still set. Otherwise, it's missing.
    const shown = [await page.getText('#token-button'), await findNotice(page)]
    assert.ok([`Token set,${NOTICE}`, 'Enter token,'].includes(shown.join()), shown.join())
  })

  test('the token cannot be replaced by a page of another origin that has opened the web UI', async (t) => {
    const opener = await openPage(t, serveBlankPage)
    const url = await serveListener(t)
    await opener.evaluate(`void (globalThis.opened = open('${url}'))`)
    await opener.page.browserContext().waitForTarget((target) => target.url() === `${url}/`)
    await opener.page.waitForFunction('opened.closed', { timeout: 300_000 })
  })

  test('the token is kept in memory only, and removed from the address', async (t) => {
    const program = await startProgram(t, { PLANT_STORE_ACCESS_LOG: '1' })
    const page = await openAsAda(t, program.url)
    assert.equal(page.page.url(), `${page.url}/`)
    await page.createPlant('1', 'Fern')
    await page.deletePlant('1')
    await page.clickButton('header', 'Token set')
    await page.fillField('#token-form', 'Token', TOKEN)
    await page.clickButton('#token-form', 'Use')
    await page.page.waitForSelector('#token-form[hidden]')
    await page.openLogEntry()

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
    assert.ok(!page.consoleMessages.join('\n').includes(TOKEN))
    await page.page.reload()
    await waitForTokenForm(page)
    await program.stop()
    assert.equal(program.stderr.lines.filter((line) => line.includes('"DELETE"')).length, 1)
    assert.ok(!program.stderr.lines.join('\n').includes(TOKEN))
  })

  test('the token is requested if it is missing, and nothing else is shown', async (t) => {
    const page = await openPage(t)
    await waitForTokenForm(page)
    assert.match(await page.getText('#token-form'), /^Token\s+Show\s+Use\s+You find a token in the terminal where /)
    assert.equal(await page.evaluate(`document.querySelector('#log').hidden`), true)
    await page.clickButton('#token-form', 'Use')
    assert.equal(await page.getText('#token-error'), 'Token is required.')
    assert.equal(page.countRequests('GET /plants'), 0)
  })

  test('the token is masked while the user types it, unless the user clicks Show', async (t) => {
    const page = await openPage(t)
    const mask = `getComputedStyle(document.querySelector('#token')).webkitTextSecurity`
    assert.equal(await page.evaluate(mask), 'disc')
    await page.clickButton('#token-form', 'Show')
    assert.equal(await page.evaluate(mask), 'none')
    await page.clickButton('#token-form', 'Hide')
    assert.equal(await page.evaluate(mask), 'disc')
  })

  test('the token is removed from its field once the service has accepted it', async (t) => {
    const page = await openPage(t)
    await page.fillField('#token-form', 'Token', ` Bearer ${TOKEN} `)
    await page.page.keyboard.press('Enter')
    await page.waitForText('#empty', /No plants yet/)
    assert.deepEqual([await page.getValue('token'), await page.getFocused()], ['', 'plants-title'])
    assert.equal(await page.evaluate(`document.querySelector('#token-form').hidden`), true)
  })

  test('a rejected token stays in its field and is selected, so that a typo can be corrected', async (t) => {
    const page = await openPage(t)
    await page.fillField('#token-form', 'Token', `${TOKEN}x`)
    await page.page.keyboard.press('Enter')
    await page.waitForText('#token-error', /^This token isn't valid\.$/)
    await waitForTokenForm(page)
    assert.deepEqual(
      await page.evaluate(`(() => {
        const { id, value, selectionStart, selectionEnd, ariaInvalid } = document.activeElement
        return [id, value, selectionStart, selectionEnd, ariaInvalid]
      })()`),
      ['token', `${TOKEN}x`, 0, 5, 'true'],
    )
    await page.page.keyboard.press('End')
    await page.page.keyboard.press('Backspace')
    assert.equal(await page.getText('#token-error'), '')
    await page.page.keyboard.press('Enter')
    await page.waitForText('#empty', /No plants yet/)
  })

  test('the token is used only once after a double click on Use', async (t) => {
    const page = await openPage(t)
    const release = page.blockRequests('GET /plants')
    await page.fillField('#token-form', 'Token', TOKEN)
    for (let i = 0; i < 2; i++) await page.clickButton('#token-form', 'Use')
    assert.equal(await page.getText('#token-progress'), 'Checking …')
    release()
    await page.waitForText('#empty', /No plants yet/)
    assert.equal(page.countRequests('GET /plants'), 1)
  })

  test('a token with invalid characters is rejected without sending a request', async (t) => {
    const page = await openPage(t)
    for (const typed of ['ein schlüssel', 'a b', 'a=b', '令牌']) {
      await page.fillField('#token-form', 'Token', typed)
      await page.clickButton('#token-form', 'Use')
      await page.waitForText(
        '#token-error',
        /^A token can contain only letters, digits and -\._~\+\/, and can end with "="\.$/,
      )
      assert.equal(await page.getValue('token'), typed)
    }
  })

  test('the plants are hidden while the service rejects the token', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(21) })
    const stop = page.respondWith('GET /plants', 401, 'application/json', '{"error":40101,"message":"Rejected."}')
    await page.fillField('#create', 'Name', 'Moss')
    await page.goToId('5')
    await page.waitForText('#token-error', /^This token isn't valid\.$/)
    await waitForTokenForm(page)
    assert.deepEqual([await page.getListedPlants(), await page.getInvalidFieldIds()], [[], ['token']])
    stop()
    await page.clickButton('#token-form', 'Use')
    await page.waitForText('#range', /^Ids/)
    assert.deepEqual([await page.getText('#token-error'), await page.getInvalidFieldIds()], ['', []])
    assert.equal(await page.getValue('new-name'), 'Moss')
  })

  test('a read-only token lists plants, and other actions report that the token can only list', async (t) => {
    const page = await openAsAda(t, {
      store: createStoreWithFerns(21),
      tokens: { [TOKEN]: { owner: 'ada', access: 'read' } },
    })
    assert.ok(page.requests.every((request) => request.startsWith('GET ')))
    await page.submitPlant('42', 'Moss')
    await page.waitForText('#message', /^This token can only list plants\.$/)
    await page.clickInRow('2', 'Delete')
    await page.waitForText('.question:not([hidden]) b', /undone/)
    await page.clickInRow('2', 'Confirm')
    await page.waitForText('#message', /^This token can only list plants\.$/)
    assert.match(await page.evaluate('document.activeElement.ariaLabel'), /^Delete plant 2, /)
    assert.equal(await page.getText('#token-button'), 'Token set')
  })

  for (const isPending of [false, true]) {
    test(`the token is forgotten together with all its data, including ${isPending ? 'a pending create' : 'a created plant'}`, async (t) => {
      const page = await openAsAda(t, { store: createStoreWithFerns(21) })
      const release = page.blockRequests(isPending ? 'POST' : 'none')
      await page.submitPlant('42', 'Moss')
      await page.waitForText('#message', isPending ? /^Adding/ : /^Added/)
      await page.waitForList()
      const lists = page.countRequests('GET /plants')
      await page.fillField('#go-to', 'Go to id', '42')
      await page.clickButton('header', 'Token set')
      await page.clickButton('#token-form', 'Forget')
      release()
      await page.page.waitForNetworkIdle({ idleTime: 100 })
      assert.doesNotMatch(await page.evaluate(`document.querySelector('main').textContent`), /Moss|Fern|42/)
      await waitForTokenForm(page)
      assert.deepEqual([page.countRequests('GET /plants'), await page.getInvalidFieldIds()], [lists, []])
      for (const id of ['new-id', 'new-name', 'go-to-id']) assert.equal(await page.getValue(id), '')
    })
  }
})
