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
const NO_TOKEN_MESSAGE = 'Enter a token to see its plants here.'

/** Returns the notice about the origin of the token, or an empty string. */
async function findNotice(page: WebUiPage): Promise<string> {
  return (await page.getText('body')).includes(NOTICE) ? NOTICE : ''
}

suite('the token in the web UI', { skip: skipWithoutChromium }, () => {
  test('is marked as coming from a link until a plant is created with it (login CSRF)', async (t) => {
    const page = await openAsAda(t)
    assert.equal(await findNotice(page), NOTICE)
    await page.submit('list')
    await page.waitForText('#list .result', /^Page 1/)
    await page.fillAndSubmit('create', { Id: 'x', Name: 'Fern' })
    await page.fillAndSubmit('delete')
    await page.waitForText('#delete .result', /^404/)
    assert.equal(await findNotice(page), NOTICE)
    await page.createPlant('1', 'Fern')
    assert.equal(await findNotice(page), '')
  })

  test('is marked as coming from a link until a plant is deleted with it (login CSRF)', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(2) })
    await page.fillAndSubmit('delete')
    await page.waitForText('#delete .result', /^Deleted/)
    assert.equal(await findNotice(page), '')
  })

  test('from a link is removed by the Forget button next to its notice (login CSRF)', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(2) })
    await page.clickButton('#token-form', 'Forget')
    assert.deepEqual([await findNotice(page), await page.getText('#access')], ['', 'none yet'])
    await page.fillAndSubmit('create')
    await page.waitForText('#create .result', /^401/)
    await page.fillField('#token-form', 'Token', TOKEN)
    await page.clickButton('#token-form', 'Use token')
    await page.waitForText('#access', /may/)
    assert.equal(await findNotice(page), '', 'the user typed this one')
  })

  test('is replaced by the token of a link in the same tab only after a confirmation (login CSRF)', async (t) => {
    const page = await openPage(t, { tokens: { [TOKEN]: 'ada', 'a+/~b==': 'bob' } })
    const questions: string[] = []
    let answer: 'accept' | 'dismiss' = 'dismiss'
    page.page.on('dialog', (dialog) => {
      questions.push(dialog.message())
      void dialog[answer]()
    })
    async function follow(hash: string, plants: RegExp): Promise<unknown> {
      questions.length = 0
      await page.evaluate(`location.hash = '${hash}'`)
      await page.page.waitForFunction('!location.hash')
      await page.submit('list')
      await page.waitForText('#list .result', plants)
      assert.equal(await page.evaluate('location.href'), `${page.url}/`)
      return [questions.length, await findNotice(page)]
    }
    assert.deepEqual(await follow(`token=${TOKEN}`, /0 plants\./), [0, NOTICE])
    await page.createPlant('1', 'Fern')
    await page.waitForText('#plants', /Fern/)
    assert.deepEqual(await follow('token=a%2b/~b==', /1 plant\./), [1, ''])
    assert.deepEqual(await follow(`token=${TOKEN}`, /1 plant\./), [0, ''], 'the token in use')
    for (const malformed of ['', '%20', 'a%20b']) {
      assert.deepEqual(await follow(`token=${malformed}`, /1 plant\./), [0, ''], malformed)
    }
    answer = 'accept'
    assert.deepEqual(await follow('token=a%2b/~b==', /0 plants\./), [1, NOTICE])
    assert.deepEqual(await follow(`token=${TOKEN}`, /1 plant\./), [1, NOTICE])
  })

  for (const text of ['', '%20', 'a%20b', '%zz', '%2541', 'ad%C3%A9', `${TOKEN}&a=b`, `${TOKEN}#token=${TOKEN}`]) {
    test(`from a link is rejected with an error about the link if it is malformed: "${text}" (login CSRF)`, async (t) => {
      const page = await openPage(t, {}, `#token=${text}`)
      await page.waitForText('#token-error', /^The token from the link is malformed: a token has letters, digits and /)
      assert.deepEqual([await page.getText('#access'), await findNotice(page)], ['none yet', ''])
      assert.equal(await page.evaluate('location.href'), `${page.url}/`)
      assert.equal(page.countRequests('GET /plants'), 0)
    })
  }

  test('from a link is not in the address or in the tab history after navigating away and back (exposure of credentials)', async (t) => {
    const page = await openAsAda(t)
    await page.page.goto(`${page.url}/openapi.json`)
    await page.page.goBack()
    assert.deepEqual(await page.evaluate('navigation.entries().map(({ url }) => url)'), [
      `${page.url}/`,
      `${page.url}/openapi.json`,
    ])
    // If the browser restores the page from its back/forward cache, the token is still there. Otherwise there is none.
    const shown = [await page.getText('#access'), await findNotice(page)]
    assert.ok([`may read; not seen to write yet,${NOTICE}`, 'none yet,'].includes(shown.join()), shown.join())
  })

  test('cannot be replaced by a page of another origin that has opened the web UI', async (t) => {
    const opener = await openPage(t, serveBlankPage)
    const url = await serveListener(t)
    await opener.evaluate(`void (globalThis.opened = open('${url}'))`)
    await opener.page.browserContext().waitForTarget((target) => target.url() === `${url}/`)
    await opener.page.waitForFunction('opened.closed', { timeout: 300_000 })
  })

  test('is kept in memory only, and removed from the address', async (t) => {
    const program = await startProgram(t, { PLANT_STORE_ACCESS_LOG: '1' })
    const page = await openAsAda(t, program.url)
    assert.equal(page.page.url(), `${page.url}/`)
    await page.createPlant('1', 'Fern')
    await page.fillAndSubmit('delete', { Id: '1' })
    await page.waitForText('#delete .result', /Deleted/)
    await page.waitForText('#none', /No plants yet/)
    await page.fillField('#token-form', 'Token', TOKEN)
    await page.clickButton('#token-form', 'Use token')
    await page.waitForText('#access', /may/)

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
    assert.equal(await page.getText('#none'), NO_TOKEN_MESSAGE)
    await program.stop()
    assert.equal(program.stderr.lines.filter((line) => line.includes('"DELETE"')).length, 1)
    assert.ok(!program.stderr.lines.join('\n').includes(TOKEN))
  })

  test('is requested if it is missing, without being shown as rejected', async (t) => {
    const page = await openPage(t)
    assert.equal(await page.getText('#none'), NO_TOKEN_MESSAGE)
    assert.equal(await page.getText('#access'), 'none yet')
    await page.submit('list')
    await page.waitForText('#list .result', /^401/)
    assert.equal(
      await page.getText('#token-error'),
      'A bearer token is required: send "Authorization: Bearer <token>".',
    )
    assert.equal(await page.getText('#access'), 'none yet')
  })

  test('is removed from its field, and kept when Enter is pressed again', async (t) => {
    const page = await openPage(t)
    await page.fillField('#token-form', 'Token', ` Bearer ${TOKEN} `)
    await page.page.keyboard.press('Enter')
    // A list response clears the error message of the token.
    await page.waitForText('#none', /No plants yet/)
    await page.page.keyboard.press('Enter')
    assert.equal(await page.getText('#token-error'), '')
    assert.equal(await page.evaluate(`document.activeElement.id + document.activeElement.value`), 'token')
  })

  test('is rejected without a request if it contains invalid characters', async (t) => {
    const page = await openPage(t)
    for (const typed of ['ein schlüssel', 'a b', 'a=b', '令牌']) {
      await page.fillField('#token-form', 'Token', typed)
      await page.clickButton('#token-form', 'Use token')
      await page.waitForText('#token-error', /^A token has letters, digits and -\._~\+\/ only, then perhaps "="\.$/)
      await page.clickButton('#token-form', 'Forget')
      await page.waitForText('#token-error', /^$/)
    }
  })

  test('hides the plants while it is rejected, until it is accepted again', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(21) })
    const stop = page.respondWith('GET /plants', 401, 'application/json', '{"error":40101,"message":"Refused."}')
    await page.fillAndSubmit('list')
    await page.waitForText('#list .result', /^401 Unauthorized: Refused\.$/)
    assert.deepEqual([await page.getText('#access'), await page.getText('#token-error')], ['refused', 'Refused.'])
    assert.deepEqual([await page.getListedPlants(), await page.getInvalidFieldIds()], [[], ['token']])
    stop()
    await page.fillAndSubmit('list')
    await page.waitForText('#access', /^may read/)
    assert.deepEqual([await page.getText('#token-error'), await page.getInvalidFieldIds()], ['', []])
  })

  test('is shown with its access level, as far as earlier responses have revealed it', async (t) => {
    const page = await openAsAda(t, {
      store: createStoreWithFerns(21),
      tokens: { [TOKEN]: { owner: 'ada', access: 'read' } },
    })
    assert.equal(await page.getText('#access'), 'may read; not seen to write yet')
    assert.ok(page.requests.every((request) => request.startsWith('GET ')))
    await page.createPlant('42', 'Moss')
    await page.waitForText('#create .result', /^403 Forbidden: This bearer token is read-only\.$/)
    assert.deepEqual([await page.getText('#access'), await page.getText('#token-error')], ['may only read', ''])
    await page.clickButton('#list', 'Delete plant 2, \u2068Fern 2\u2069')
    await page.clickButton('#list', 'Delete for good plant 2, \u2068Fern 2\u2069')
    await page.waitForText('#list .result', /^403 Forbidden: This bearer token is read-only\. Page 1: 10 plants\./)
  })

  for (const isPending of [false, true]) {
    test(`is forgotten together with all its data, including ${isPending ? 'a pending create' : 'a created plant'}`, async (t) => {
      const page = await openAsAda(t, { store: createStoreWithFerns(21) })
      const release = page.blockRequests(isPending ? 'POST' : 'none')
      await page.fillAndSubmit('create')
      await page.waitForText('#create + .exchange', isPending ? /Waiting/ : /200 OK/)
      await page.waitForText('#list .result', /^Page/)
      const lists = page.countRequests('GET /plants')
      await page.fillField('#delete', 'Id', '42')
      await page.clickButton('#token-form', 'Forget')
      release()
      await page.page.waitForNetworkIdle({ idleTime: 100 })
      // The port in the curl commands can contain 42 too.
      assert.doesNotMatch((await page.getText('main')).replaceAll(page.url, ''), /Moss|Fern|42/)
      assert.deepEqual([await page.getText('#access'), await page.getText('#none')], ['none yet', NO_TOKEN_MESSAGE])
      assert.deepEqual([page.countRequests('GET /plants'), await page.getInvalidFieldIds()], [lists, []])
      for (const id of ['new-id', 'new-name', 'delete-id']) assert.equal(await page.getValue(id), '')
      await page.submit('list')
      await page.waitForText('#list .result', /^401/)
    })
  }
})
