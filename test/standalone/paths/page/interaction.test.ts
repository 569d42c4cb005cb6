import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { memoryStore, StoreUnavailableError } from '../../../../src/index.ts'
import {
  FORM_INPUT,
  skipWithoutChromium,
  openAsAda,
  REQUEST_PREFIXES,
  createStoreWithFerns,
} from '../../../support/page/web-ui-page.ts'
import { captureLog } from '../../../support/program/capture-log.ts'
import { startProgram } from '../../../support/program/program.ts'

suite('the web UI', { skip: skipWithoutChromium }, () => {
  test('sends a form only once while a request is pending, whether by mouse, keyboard, script or double click', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(21) })
    for (const form of ['list', 'create', 'delete'] as const) {
      const before = page.countRequests(REQUEST_PREFIXES[form])
      const release = page.blockRequests(REQUEST_PREFIXES[form])
      await page.fillAndSubmit(form)
      await page.submit(form)
      await page.page.keyboard.press('Enter')
      const busy = await page.evaluate(`document.querySelector('#${form} button').ariaDisabled`)
      await page.evaluate(`document.querySelector('#${form}').requestSubmit()`)
      release()
      await page.waitForText(`#${form} .result`, /Created|Deleted|Page 1/)
      // The second click of a double click can arrive after the response, which has cleared the form.
      if (form !== 'list') await page.submit(form)
      assert.match(await page.getText(`#${form} .result`), /Created|Deleted|Page 1/)
      assert.deepEqual(
        [busy, page.countRequests(REQUEST_PREFIXES[form]) - before, await page.getInvalidFieldIds()],
        ['true', 1, []],
      )
    }
  })

  test('does not send an invalid id or empty required fields', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(21) })
    const { length } = page.requests
    for (const [form, label, field] of [
      ['create', 'Id', 'new-id'],
      ['delete', 'Id', 'delete-id'],
      ['list', 'After id (optional)', 'list-after'],
    ] as const) {
      for (const text of ['..', '.', '01', '1e3', '9223372036854775808', 'x']) {
        await page.fillAndSubmit(form, { ...FORM_INPUT[form], [label]: text })
        await page.waitForText(`#${field}-error`, /^id must be a whole number from -9\d+ to 9\d+, in digits\.$/)
        assert.deepEqual([page.requests.length, await page.getInvalidFieldIds()], [length, [field]])
        await page.fillField(`#${form}`, label, '4')
        assert.deepEqual(await page.getInvalidFieldIds(), [])
      }
    }
    await page.fillAndSubmit('create', { Id: '', Name: '' })
    await page.fillAndSubmit('delete', { Id: '' })
    assert.deepEqual(
      [page.requests.length, await page.getInvalidFieldIds()],
      [length, ['new-id', 'new-name', 'delete-id']],
    )
  })

  test('shows responses that are not from plant-store as errors', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(21) })
    for (const [form, status, type, body] of [
      ['create', 200, 'text/html', '<h1>Log in first</h1>'],
      ['create', 200, 'text/html', '{"name":"Moss"}'],
      ['create', 200, 'application/json', '{"name":1}'],
      ['create', 429, 'application/json', '{"error":"slow_down"}'],
      ['create', 429, 'application/json', '{"error":40900,"message":"x"}'],
      ['delete', 200, 'text/html', '<h1>Log in first</h1>'],
      ['delete', 200, 'application/json', '{"name":"Moss"}'],
      ['list', 200, 'text/html', '<h1>Log in first</h1>'],
      ['list', 200, 'application/json', 'null'],
      ['list', 200, 'application/json', '[{"name":"without an id"}]'],
      ['list', 200, 'application/json', '[{"id":1,"name":1}]'],
      ['list', 200, 'application/json', '[{"id": 9007199254740993,"name":"with an id that would be rounded"}]'],
      ['list', 502, 'text/html', '<h1>Bad gateway</h1>'],
    ] as const) {
      const stop = page.respondWith(REQUEST_PREFIXES[form], status, type, body)
      await page.fillAndSubmit(form)
      await page.waitForText(`#${form} .result`, /^\d+ [\w ]+: this response is not from plant-store\./)
      assert.equal((await page.getText(`#${form} .result`)).includes('may or may not have been made'), form !== 'list')
      assert.equal(await page.getText(`#${form} + .exchange .response`), `Content-Type: ${type}\n\n${body}`)
      if (form !== 'list')
        assert.equal(await page.getValue(form === 'create' ? 'new-id' : 'delete-id'), FORM_INPUT[form]['Id'])
      stop()
    }
  })

  test('keeps what is typed during a create, without changing the shown request or mixing up its error', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(21) })
    for (const [id, result] of [
      ['42', /^Created/],
      ['1', /^409 Conflict: You already have a plant with this id/],
    ] as const) {
      const release = page.blockRequests('POST')
      await page.fillAndSubmit('create', { Id: id, Name: 'Moss' })
      await page.fillField('#create', 'Id', '43')
      assert.equal(await page.getText('#create + .exchange .response'), 'Waiting for it …')
      release()
      await page.waitForText('#create .result', result)
      assert.match(await page.getText('#create + .exchange .request'), new RegExp(`"id":${id},`))
      assert.deepEqual(
        [await page.getValue('new-id'), await page.getValue('new-name'), await page.getInvalidFieldIds()],
        ['43', 'Moss', []],
      )
    }
  })

  test('goes to the next page even if a create finishes in between', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(21) })
    const createNow = page.blockRequests('POST')
    await page.fillAndSubmit('create')
    const listNow = page.blockRequests('GET /plants')
    await page.clickButton('#list', 'Next')
    createNow()
    await page.waitForText('#create .result', /^Created/)
    listNow()
    await page.waitForText('#list .result', /^Page 2: 10 plants/)
  })
})

suite('while the service is unavailable, the web UI', { skip: skipWithoutChromium }, () => {
  test('shows that, and continues when the service is back', async (t) => {
    const program = await startProgram(t)
    const page = await openAsAda(t, program.url)
    await page.waitForText('#service', /^ready$/)
    await program.stop()

    await page.submit('list')
    await page.waitForText('#list .result', /^The service cannot be reached\.$/)
    await page.waitForText('#service', /^unreachable, retrying …$/)
    await page.fillAndSubmit('create', { Id: '1', Name: 'Fern' })
    await page.waitForText(
      '#create .result',
      /^The service cannot be reached\. The change may or may not have been made: /,
    )

    await startProgram(t, { PORT: String(program.port) })
    await page.waitForText('#service', /^ready$/)
    await page.waitForText('#list .result', /^Page 1: 0 plants/)
    await page.createPlant('1', 'Fern')
    await page.waitForText('#plants', /Fern/)
  })

  test('shows that only the store is unavailable', async (t) => {
    captureLog(t)
    let isAway = true
    const ping = (): void => {
      if (isAway) throw new StoreUnavailableError('away')
    }
    const page = await openAsAda(t, { store: { ...memoryStore(), ping } })
    await page.waitForText('#service', /^not ready, retrying …$/)
    isAway = false
    await page.waitForText('#service', /^ready$/)
  })

  for (const isForgotten of [false, true]) {
    test(
      isForgotten ? 'does not retry a failed list after its token is forgotten' : 'retries a failed list automatically',
      async (t) => {
        const page = await openAsAda(t, { store: createStoreWithFerns(21) })
        const stop = page.respondWith('GET /plants', 503, 'application/json', '{"error":50300,"message":"Away."}')
        await page.fillAndSubmit('list')
        await page.waitForText('#list .result', /^503 Service Unavailable: Away\.$/)
        stop()
        if (isForgotten) await page.clickButton('#token-form', 'Forget')
        const lists = page.countRequests('GET /plants')
        if (isForgotten) await page.page.waitForResponse((response) => response.url().endsWith('/readyz'))
        else await page.waitForText('#list .result', /^Page 1/)
        await page.page.waitForNetworkIdle({ idleTime: 100 })
        assert.equal(await page.getText('#access'), isForgotten ? 'none yet' : 'may read; not seen to write yet')
        assert.equal(page.countRequests('GET /plants') - lists, isForgotten ? 0 : 1)
      },
    )
  }

  test('treats a truncated response as a failure', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(21) })
    page.intercept('GET /plants', (response) => {
      response.write('[{"name":"Fern"')
      response.destroy()
    })
    await page.submit('list')
    await page.waitForText('#list .result', /^The service cannot be reached\.$/)
    await page.waitForText('#service', /^ready$/)
  })
})
