import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { openAsAda, openPage, skipWithoutBrowser, TOKEN } from '../support/web-ui-page.ts'
import { createStoreWithPlants } from '../support/plant-list.ts'

const PENDING = `document.querySelector('#token-message').textContent === 'Checking …'`

suite('tokens in the web UI', { skip: skipWithoutBrowser }, () => {
  test('lists the plants of a typed token, and closes and clears the token form', async (t) => {
    const ui = await openPage(t, { store: createStoreWithPlants(2) })
    assert.equal(await ui.isVisible('#plants'), false)
    await ui.useToken(` Bearer ${TOKEN} `)
    await ui.waitForText('#token-title', /^Token set$/)
    assert.deepEqual(await ui.getListed('name'), ['Fern 1', 'Fern 2'])
    assert.deepEqual([await ui.getValue('token'), await ui.isVisible('#token-form')], ['', false])
    assert.equal(await ui.getFocused(), 'plants-title')
  })

  test('removes the token of a link from the address', async (t) => {
    const ui = await openAsAda(t)
    assert.equal(ui.page.url(), ui.url)
    assert.deepEqual(await ui.evaluate('navigation.entries().map(({ url }) => url)'), [ui.url])
  })

  test('keeps the token through a reload of the tab', async (t) => {
    const ui = await openAsAda(t, { store: createStoreWithPlants(1) })
    await ui.page.reload()
    await ui.waitForText('#list', /Fern 1/)
  })

  test('works at an address with a user name and a password', async (t) => {
    const ui = await openPage(t, { store: createStoreWithPlants(1) })
    await ui.page.goto(`${ui.url.replace('://', '://user:password@')}#token=${TOKEN}`)
    await ui.waitForText('#list', /Fern 1/)
    assert.equal(await ui.evaluate('location.hash'), '')
    await ui.submitPlant(undefined, 'Moss')
    await ui.waitForText('#message', /^Added/)
  })

  for (const text of ['%20', 'a%20b', '%zz', `${TOKEN}&a=b`]) {
    test(`rejects the malformed token of the link #token=${text} without sending it`, async (t) => {
      const ui = await openPage(t, {}, `#token=${text}`)
      await ui.waitForText('#token-message', /^A token contains only letters, digits/)
      assert.deepEqual([ui.page.url(), ui.requests], [ui.url, []])
    })
  }

  test('asks before a link in the same tab replaces the token, because an attacker may have sent the link', async (t) => {
    const ui = await openAsAda(t, { store: createStoreWithPlants(1) })
    const answers: ('accept' | 'dismiss')[] = ['dismiss', 'accept']
    const questions: string[] = []
    ui.page.on('dialog', (dialog) => {
      questions.push(dialog.message())
      void dialog[answers.shift()!]()
    })
    await ui.evaluate(`location.hash = 'token=Ym9i'`)
    await ui.page.waitForFunction(`!location.hash && document.querySelector('#list')?.innerText.includes('Fern 1')`)
    await ui.evaluate(`location.hash = 'token=Ym9i'`)
    await ui.page.waitForFunction(
      `!location.hash && document.querySelector('#range')?.innerText.startsWith('No plants')`,
    )
    assert.equal(questions.length, 2)
    assert.match(questions[0]!, /^The link contains another token/)
  })

  test("shows that a token isn't valid, keeps it in its field, and doesn't send it again", async (t) => {
    const ui = await openPage(t)
    await ui.useToken('wrong')
    await ui.waitForText('#token-message', /^This token isn't valid\.$/)
    assert.deepEqual([await ui.getValue('token'), await ui.getFocused()], ['wrong', 'token'])
    await ui.focusWindow()
    await ui.page.reload()
    await ui.page.waitForNetworkIdle({ idleTime: 100 })
    assert.equal(ui.requests.length, 1)
  })

  test("doesn't submit a token that contains other characters", async (t) => {
    const ui = await openPage(t)
    for (const text of ['a b', 'a=b', '令牌']) {
      await ui.useToken(text)
      assert.match(await ui.getText('#token-message'), /^A token contains only letters, digits/)
    }
    assert.deepEqual(ui.requests, [])
  })

  test('masks the token unless the user wants to see it', async (t) => {
    const ui = await openPage(t)
    const mask = `getComputedStyle(document.querySelector('#token')).webkitTextSecurity`
    assert.equal(await ui.evaluate(mask), 'disc')
    await ui.click('#show')
    assert.equal(await ui.evaluate(mask), 'none')
  })

  for (const isRejected of [false, true]) {
    test(`keeps a token that is being typed when the previous one is ${isRejected ? 'rejected' : 'accepted'}`, async (t) => {
      const ui = await openPage(t)
      const release = ui.blockRequests('GET')
      await ui.useToken(isRejected ? 'wrong' : TOKEN)
      await ui.page.waitForFunction(PENDING)
      await ui.fill('token', 'Ym9')
      release()
      await ui.page.waitForFunction(`!(${PENDING})`)
      assert.deepEqual([await ui.getValue('token'), await ui.getFocused()], ['Ym9', 'token'])
      await ui.page.keyboard.type('i')
      await ui.page.keyboard.press('Enter')
      await ui.waitForText('#token-title', /^Token set$/)
      assert.equal(ui.requests.at(-1)!.split(' ').at(-1), 'Ym9i')
    })
  }

  test('keeps a token that is being typed when a late response for the revoked token arrives', async (t) => {
    const ui = await openAsAda(t, { store: createStoreWithPlants(3) })
    const release = ui.blockRequests('DELETE')
    await ui.deletePlant(1)
    ui.revokeToken()
    await ui.click('#reload')
    await ui.waitForText('#token-message', /isn't valid/)
    await ui.page.keyboard.type('Ym9')
    release()
    await ui.page.waitForNetworkIdle({ idleTime: 100 })
    assert.deepEqual([await ui.getValue('token'), await ui.getFocused()], ['Ym9', 'token'])
    assert.equal(await ui.isVisible('#token-form'), true)
    assert.equal(ui.countRequests('DELETE'), 1)
  })

  test('hides the plants of a revoked token, and keeps what the user has typed for a new plant', async (t) => {
    const ui = await openAsAda(t, { store: createStoreWithPlants(3) })
    await ui.fill('new-id', '4711')
    await ui.fill('new-name', 'Moss')
    const restore = ui.revokeToken()
    await ui.click('#reload')
    await ui.waitForText('#token-message', /^This token isn't valid\.$/)
    assert.deepEqual([await ui.isVisible('#plants'), await ui.getListed('name')], [false, []])
    restore()
    await ui.useToken(TOKEN)
    await ui.waitForText('#list', /Fern 3/)
    assert.deepEqual([await ui.getValue('new-id'), await ui.getValue('new-name')], ['4711', 'Moss'])
    await ui.page.focus('#new-name')
    await ui.page.keyboard.press('Enter')
    await ui.waitForText('#list', /4711\s+Moss/)
  })

  test('forgets the token together with its plants, its requests and what has been typed', async (t) => {
    const ui = await openAsAda(t, { store: createStoreWithPlants(3) })
    await ui.fill('new-name', 'Moss')
    await ui.evaluate(`document.querySelector('#token-panel').open = true`)
    const release = ui.blockRequests('GET /plants')
    await ui.click('#reload')
    await ui.evaluate(`document.querySelector('#forget').click()`)
    await ui.page.waitForFunction(`document.querySelector('#token-title')?.innerText === 'Enter token'`)
    release()
    assert.doesNotMatch(await ui.evaluate('document.documentElement.outerHTML'), /Fern|Moss/)
    assert.equal(await ui.getValue('new-name'), '')
    assert.equal(ui.countRequests('GET /plants?limit=26'), 2)
  })

  test("doesn't repeat a failed request of a token that has been replaced", async (t) => {
    const ui = await openPage(t)
    // Keeps the timers of retries, so that the test can let them expire.
    await ui.runBeforePage(`const startTimer = window.setTimeout
      window.retries = []
      window.setTimeout = (run, ms) => (ms === 2000 ? retries.push(run) : startTimer(run, ms))`)
    const stop = ui.intercept('GET /plants', (response) => response.destroy())
    await ui.useToken(TOKEN)
    await ui.page.waitForFunction('retries.length > 0')
    stop()
    await ui.click('#token-title')
    await ui.useToken('Ym9i')
    await ui.waitForText('#range', /^No plants yet/)
    const { length } = ui.requests
    await ui.evaluate('retries.forEach((run) => run())')
    await ui.page.waitForNetworkIdle({ idleTime: 100 })
    assert.equal(ui.requests.length, length)
  })

  test('works without storage in the browser', async (t) => {
    const ui = await openPage(t)
    await ui.runBeforePage(`Object.defineProperty(window, 'sessionStorage', { get() { throw new Error('denied') } })`)
    await ui.useToken(TOKEN)
    await ui.waitForText('#range', /^No plants yet/)
  })
})
