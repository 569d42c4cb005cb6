import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { suite, test } from 'node:test'
import { memoryStore, StoreUnavailableError } from '../../../../src/index.ts'
import {
  createStoreWithFerns,
  createWebUiListener,
  openAsAda,
  openPage,
  skipWithoutChromium,
} from '../../../support/page/web-ui-page.ts'
import { captureLog } from '../../../support/program/capture-log.ts'
import { startProgram, TOKEN } from '../../../support/program/program.ts'

suite('the web UI', { skip: skipWithoutChromium }, () => {
  test('adds a plant only once, whether by mouse, keyboard, script or double click', async (t) => {
    const page = await openAsAda(t)
    const release = page.blockRequests('POST')
    await page.submitPlant('42', 'Moss')
    await page.clickButton('#create', 'Add')
    await page.page.keyboard.press('Enter')
    assert.equal(await page.evaluate(`document.querySelector('#create button').ariaDisabled`), 'true')
    await page.evaluate(`document.querySelector('#create').requestSubmit()`)
    release()
    await page.waitForText('#message', /^Added/)
    // The second click of a double click can arrive after the response, which has cleared the form.
    await page.clickButton('#create', 'Add')
    assert.match(await page.getText('#message'), /^Added/)
    assert.deepEqual([page.countRequests('POST'), await page.getInvalidFieldIds()], [1, []])
  })

  test('ignores further clicks on Next until the next page is shown', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(35) })
    const release = page.blockRequests('GET /plants')
    for (let i = 0; i < 3; i++) await page.clickButton('#plants', 'Next')
    assert.equal(await page.getText('#range'), 'Loading …')
    assert.equal(page.countRequests('GET /plants'), 2)
    release()
    await page.waitForText('#range', /^Ids \u206811/)
    await page.clickButton('#plants', 'Next')
    await page.waitForText('#range', /^Ids \u206821/)
    // The last of several clicks wins, in whatever order the responses arrive.
    const releaseAll = page.blockRequests('GET /plants')
    await page.clickButton('#plants', 'Previous')
    await page.goToId('31')
    releaseAll()
    await page.waitForText('#range', /^Ids \u206831/)
    await page.page.waitForNetworkIdle({ idleTime: 100 })
    assert.match(await page.getText('#range'), /^Ids \u206831/)
  })

  test('asks for confirmation after a double click on Delete, and deletes nothing', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(3) })
    for (const width of [360, 1280]) {
      await page.page.setViewport({ width, height: 900 })
      await page.page.click('tbody tr:nth-child(2) .action > button', { count: 2 })
      assert.equal(await page.evaluate(`document.querySelectorAll('.question:not([hidden])').length`), 1)
      await page.clickInRow('2', 'Cancel')
    }
    assert.equal(page.countRequests('DELETE'), 0)
  })

  test('deletes several plants concurrently, with one request each', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(4) })
    const release = page.blockRequests('DELETE')
    for (const id of ['1', '3']) {
      await page.clickInRow(id, 'Delete')
      await page.page.click('.question:not([hidden]) .confirm', { count: 2 })
    }
    await page.page.waitForFunction(`document.querySelectorAll('.action [aria-disabled=true]').length === 2`)
    await page.clickInRow('1', 'Delete')
    assert.equal(await page.evaluate(`document.querySelectorAll('.question:not([hidden])').length`), 0)
    release()
    await page.page.waitForFunction(`document.querySelectorAll('tbody tr').length === 2`)
    assert.deepEqual(await page.getListedPlants('id'), [['2'], ['4']])
    assert.deepEqual(page.requests.filter((request) => request.startsWith('DELETE')).sort(), [
      'DELETE /plants/1',
      'DELETE /plants/3',
    ])
  })

  test('does not send an invalid id or empty required fields', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(21) })
    const { length } = page.requests
    for (const text of ['..', '.', '01', '1e3', '9223372036854775808', 'x']) {
      const error = /^Id must be a whole number from -9223372036854775808 to 9223372036854775807\.$/
      await page.submitPlant(text, 'Moss')
      await page.waitForText('#new-id-error', error)
      assert.deepEqual(await page.getInvalidFieldIds(), ['new-id'])
      await page.fillField('#create', 'Id', '4')
      await page.goToId(text)
      await page.waitForText('#go-to-id-error', error)
      assert.deepEqual([page.requests.length, await page.getInvalidFieldIds()], [length, ['go-to-id']])
      await page.fillField('#go-to', 'Go to id', '4')
      assert.deepEqual(await page.getInvalidFieldIds(), [])
    }
    await page.submitPlant('', '')
    assert.deepEqual(
      [await page.getText('#new-id-error'), await page.getText('#new-name-error'), await page.getFocused()],
      ['Id is required.', 'Name is required.', 'new-id'],
    )
    assert.equal(page.requests.length, length)
  })

  test('shows responses that are not from plant-store as errors, and keeps the form', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(21) })
    for (const [prefix, status, type, body] of [
      ['POST', 200, 'text/html', '<h1>Log in first</h1>'],
      ['POST', 200, 'application/json', '{"name":1}'],
      ['POST', 400, 'application/json', '{"error":"slow_down"}'],
      ['POST', 422, 'application/json', '{"error":40900,"message":"x"}'],
      ['DELETE', 200, 'text/html', '<h1>Log in first</h1>'],
      ['DELETE', 200, 'application/json', '{"name":"Moss"}'],
      ['GET /plants', 200, 'text/html', '<h1>Log in first</h1>'],
      ['GET /plants', 200, 'application/json', 'null'],
      ['GET /plants', 200, 'application/json', '[{"name":"without an id"}]'],
      ['GET /plants', 200, 'application/json', '[{"id":1,"name":1}]'],
      ['GET /plants', 403, 'text/html', '<h1>Forbidden</h1>'],
    ] as const) {
      const what = `${prefix} ${status} ${body}`
      const stop = page.respondWith(prefix, status, type, body)
      if (prefix === 'POST') await page.submitPlant('42', 'Moss')
      else if (prefix === 'DELETE') {
        await page.clickInRow('2', 'Delete')
        await page.clickInRow('2', 'Confirm')
      } else await page.goToId('1')
      await page.waitForText(
        '#message',
        /^(Unexpected response|The service didn't confirm this, so the plant may or may not have been)/,
      )
      const entry = await page.openLogEntry(prefix === 'DELETE' ? 2 : 1)
      assert.equal(entry.response, `Content-Type: ${type}\n\n${body}`, what)
      if (prefix === 'POST') assert.equal(await page.getValue('new-name'), 'Moss')
      stop()
      await page.goToId('1')
      await page.waitForList()
      assert.equal(await page.getText('#message'), '')
    }
  })

  test('keeps text that is typed during a create, and does not mark it as invalid if the create fails', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(21) })
    for (const [id, result] of [
      ['42', /^Added/],
      ['1', /^Plant \u20681\u2069 already exists\.$/],
    ] as const) {
      const release = page.blockRequests('POST')
      await page.submitPlant(id, 'Moss')
      await page.fillField('#create', 'Id', '43')
      release()
      await page.waitForText('#message', result)
      assert.deepEqual(
        [await page.getValue('new-id'), await page.getValue('new-name'), await page.getInvalidFieldIds()],
        ['43', 'Moss', []],
      )
    }
  })

  test('goes to the next page even if a create completes while that page is loading', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(21) })
    const createNow = page.blockRequests('POST')
    await page.submitPlant('42', 'Moss')
    const listNow = page.blockRequests('GET /plants')
    await page.clickButton('#plants', 'Next')
    createNow()
    await page.waitForText('#message', /^Added/)
    listNow()
    await page.waitForText('#range', /^Ids \u206811\u2069 to \u206820/)
  })
})

suite('on a bad network, the web UI', { skip: skipWithoutChromium }, () => {
  /** Lets the service handle the request, but cuts its response short. */
  function cutResponse(response: ServerResponse, next: () => void): void {
    response.writeHead = () => response.destroy()
    next()
  }

  test('adds and deletes a plant once, even if the responses are lost', async (t) => {
    const page = await openAsAda(t)
    const stopPost = page.intercept('POST', cutResponse)
    await page.submitPlant('1', 'Fern')
    await page.page.waitForFunction(`document.querySelector('#log .status').textContent === 'No response'`)
    stopPost()
    await page.waitForText('#message', /^Added/)
    assert.deepEqual(await page.fetchPlants(), [{ name: 'Fern' }])
    assert.ok(page.countRequests('POST') > 1)

    const stopDelete = page.intercept('DELETE', cutResponse)
    await page.clickInRow('1', 'Delete')
    await page.clickInRow('1', 'Confirm')
    await page.page.waitForFunction(`document.querySelector('#log .status').textContent === 'No response'`)
    stopDelete()
    await page.waitForText('#message', /^Deleted/)
    assert.deepEqual(await page.fetchPlants(), [])
  })

  test('shows that it is unknown whether a plant was added if no attempt gets a response', async (t) => {
    const page = await openAsAda(t)
    const stop = page.intercept('POST', cutResponse)
    await page.submitPlant('1', 'Fern')
    await page.waitForText(
      '#message',
      /^The service didn't confirm this, so the plant may or may not have been added\./,
      60_000,
    )
    stop()
    // The list is reloaded as soon as the service is ready.
    await page.waitForText('tbody', /Fern/)
    assert.equal(await page.getValue('new-name'), 'Fern')
  })

  test('treats a truncated response as a failure, and reloads the list', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(21) })
    const stop = page.intercept('GET /plants', (response) => {
      response.write('[{"name":"Fern"')
      response.destroy()
    })
    await page.clickButton('#plants', 'Next')
    await page.waitForText('#message', /^The service is unreachable\. The list loads when the service is back\.$/)
    stop()
    await page.waitForText('#range', /^Ids \u206811/)
    assert.equal(await page.getText('#message'), '')
  })
})

suite('during an outage, the web UI', { skip: skipWithoutChromium }, () => {
  test('shows that the service is unreachable, and continues when the service is back', async (t) => {
    const program = await startProgram(t)
    const page = await openAsAda(t, program.url)
    await page.waitForText('#service', /^Ready$/)
    await program.stop()

    await page.goToId('5')
    await page.waitForText('#message', /^The service is unreachable\. The list loads when the service is back\.$/)
    await page.waitForText('#service', /^Unreachable – retrying$/)
    await page.submitPlant('1', 'Fern')

    await startProgram(t, { PORT: String(program.port) })
    await page.waitForText('#service', /^Ready$/)
    // The client has retried the create in the meantime.
    await page.waitForText('#message', /^Added/)
    await page.goToId('')
    await page.waitForText('tbody', /Fern/)
  })

  test('distinguishes a service that is starting from one whose store has become unavailable', async (t) => {
    captureLog(t)
    let isAvailable = false
    const ping = (): void => {
      if (!isAvailable) throw new StoreUnavailableError('unavailable')
    }
    const page = await openPage(t, { store: { ...memoryStore(), ping } })
    await page.waitForText('#service', /^Starting$/)
    isAvailable = true
    await page.waitForText('#service', /^Ready$/)
    isAvailable = false
    await page.page.waitForFunction(`dispatchEvent(new Event('focus')) &&
      document.querySelector('#service').textContent === 'Unreachable – retrying'`)
  })

  for (const isForgotten of [false, true]) {
    test(
      isForgotten ? 'does not retry a failed list after the token is forgotten' : 'retries a failed list automatically',
      async (t) => {
        const page = await openAsAda(t, { store: createStoreWithFerns(21) })
        const stop = page.respondWith('GET /plants', 503, 'application/json', '{"error":50300,"message":"Away."}')
        await page.goToId('1')
        await page.waitForText('#message', /^The service is unreachable\./)
        stop()
        if (isForgotten) await page.clickButton('#link-notice', 'Forget the token from the link')
        const lists = page.countRequests('GET /plants')
        if (isForgotten) await page.page.waitForResponse((response) => response.url().endsWith('/readyz'))
        else await page.waitForText('#message', /^$/)
        await page.page.waitForNetworkIdle({ idleTime: 100 })
        assert.equal(await page.getText('#token-button'), isForgotten ? 'Enter token' : 'Token set')
        assert.equal(page.countRequests('GET /plants') - lists, isForgotten ? 0 : 1)
      },
    )
  }

  test('shows the plants after an outage that began before the first list', async (t) => {
    captureLog(t)
    let isAvailable = false
    const listener = createWebUiListener({ store: createStoreWithFerns(1) })
    const page = await openPage(t, (request, response) => {
      if (isAvailable || !/^\/(plants|readyz)/.test(request.url!)) listener(request, response)
      else response.destroy()
    })
    await page.fillField('#token-form', 'Token', TOKEN)
    await page.page.keyboard.press('Enter')
    await page.waitForText('#message', /^The service is unreachable\./)
    await page.waitForText('#service', /^Unreachable – retrying$/)
    isAvailable = true
    await page.waitForText('tbody', /Fern 1/)
    assert.equal(await page.getText('#message'), '')
  })
})
