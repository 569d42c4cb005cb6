import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { memoryStore, StoreUnavailableError } from '../../../../src/index.ts'
import { FIELDS, needsChromium, openAsAda, REQUESTS, storeOf } from '../../../support/page/browser.ts'
import { captureLog } from '../../../support/program/captured-log.ts'
import { startProgram } from '../../../support/program/program.ts'

suite('under the hands of a person, the page', { skip: needsChromium }, () => {
  test('sends a form once while it waits, by mouse, key or whatever presses its button, and at a second click', async (t) => {
    const page = await openAsAda(t, { store: storeOf(21) })
    for (const form of ['list', 'create', 'delete'] as const) {
      const before = page.count(REQUESTS[form])
      const release = page.hold(REQUESTS[form])
      await page.send(form)
      await page.submit(form)
      await page.page.keyboard.press('Enter')
      const busy = await page.evaluate(`document.querySelector('#${form} button').ariaDisabled`)
      await page.evaluate(`document.querySelector('#${form}').requestSubmit()`)
      release()
      await page.waitFor(`#${form} .result`, /Created|Deleted|Page 1/)
      // This click comes after the response, which has emptied the form.
      if (form !== 'list') await page.submit(form)
      assert.match(await page.text(`#${form} .result`), /Created|Deleted|Page 1/)
      assert.deepEqual([busy, page.count(REQUESTS[form]) - before, await page.wrong()], ['true', 1, []])
    }
  })

  test('does not send an id that is none, nor what is required and empty', async (t) => {
    const page = await openAsAda(t, { store: storeOf(21) })
    const { length } = page.requests
    for (const [form, label, field] of [
      ['create', 'Id', 'new-id'],
      ['delete', 'Id', 'delete-id'],
      ['list', 'After id (optional)', 'list-after'],
    ] as const) {
      for (const text of ['..', '.', '01', '1e3', '9223372036854775808', 'x']) {
        await page.send(form, { ...FIELDS[form], [label]: text })
        await page.waitFor(`#${field}-error`, /^id must be a whole number from -9\d+ to 9\d+, in digits\.$/)
        assert.deepEqual([page.requests.length, await page.wrong()], [length, [field]])
        await page.fill(`#${form}`, label, '4')
        assert.deepEqual(await page.wrong(), [])
      }
    }
    await page.send('create', { Id: '', Name: '' })
    await page.send('delete', { Id: '' })
    assert.deepEqual([page.requests.length, await page.wrong()], [length, ['new-id', 'new-name', 'delete-id']])
  })

  test('takes what is not of the service for no response, and shows it', async (t) => {
    const page = await openAsAda(t, { store: storeOf(21) })
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
      const stop = page.answer(REQUESTS[form], status, type, body)
      await page.send(form)
      await page.waitFor(`#${form} .result`, /^\d+ [\w ]+: this response is not from plant-store\./)
      assert.equal((await page.text(`#${form} .result`)).includes('Nobody knows'), form !== 'list')
      assert.equal(await page.text(`#${form} + .exchange .response`), `Content-Type: ${type}\n\n${body}`)
      if (form !== 'list')
        assert.equal(await page.value(form === 'create' ? 'new-id' : 'delete-id'), FIELDS[form]['Id'])
      stop()
    }
  })

  test('keeps what is typed while a create is under way, the request in view, and its error apart', async (t) => {
    const page = await openAsAda(t, { store: storeOf(21) })
    for (const [id, result] of [
      ['42', /^Created/],
      ['1', /^409 Conflict: You already have a plant with this id/],
    ] as const) {
      const release = page.hold('POST')
      await page.send('create', { Id: id, Name: 'Moss' })
      await page.fill('#create', 'Id', '43')
      assert.equal(await page.text('#create + .exchange .response'), 'Waiting for it …')
      release()
      await page.waitFor('#create .result', result)
      assert.match(await page.text('#create + .exchange .request'), new RegExp(`"id":${id},`))
      assert.deepEqual(
        [await page.value('new-id'), await page.value('new-name'), await page.wrong()],
        ['43', 'Moss', []],
      )
    }
  })

  test('goes to the next page, also if a create ends in between', async (t) => {
    const page = await openAsAda(t, { store: storeOf(21) })
    const createNow = page.hold('POST')
    await page.send('create')
    const listNow = page.hold('GET /plants')
    await page.press('#list', 'Next')
    createNow()
    await page.waitFor('#create .result', /^Created/)
    listNow()
    await page.waitFor('#list .result', /^Page 2: 10 plants/)
  })
})

suite('while the service is away the page', { skip: needsChromium }, () => {
  test('says so, and goes on when it is back', async (t) => {
    const program = await startProgram(t)
    const page = await openAsAda(t, program.url)
    await page.waitFor('#service', /^ready$/)
    await program.end()

    await page.submit('list')
    await page.waitFor('#list .result', /^The service cannot be reached\.$/)
    await page.waitFor('#service', /^away, asking again …$/)
    await page.send('create', { Id: '1', Name: 'Fern' })
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
    const ping = (): void => {
      if (isAway) throw new StoreUnavailableError('away')
    }
    const page = await openAsAda(t, { store: { ...memoryStore(), ping } })
    await page.waitFor('#service', /^not ready, asking again …$/)
    isAway = false
    await page.waitFor('#service', /^ready$/)
  })

  for (const isForgotten of [false, true]) {
    test(`asks again for a list that failed, ${isForgotten ? 'but not once its token is forgotten' : 'by itself'}`, async (t) => {
      const page = await openAsAda(t, { store: storeOf(21) })
      const stop = page.answer('GET /plants', 503, 'application/json', '{"error":50300,"message":"Away."}')
      await page.send('list')
      await page.waitFor('#list .result', /^503 Service Unavailable: Away\.$/)
      stop()
      if (isForgotten) await page.press('#token-form', 'Forget')
      const lists = page.count('GET /plants')
      if (isForgotten) await page.page.waitForResponse((response) => response.url().endsWith('/readyz'))
      else await page.waitFor('#list .result', /^Page 1/)
      await page.page.waitForNetworkIdle({ idleTime: 100 })
      assert.equal(await page.text('#access'), isForgotten ? 'none yet' : 'may read; not seen to write yet')
      assert.equal(page.count('GET /plants') - lists, isForgotten ? 0 : 1)
    })
  }

  test('takes a response that is cut for none', async (t) => {
    const page = await openAsAda(t, { store: storeOf(21) })
    page.steer('GET /plants', (response) => {
      response.write('[{"name":"Fern"')
      response.destroy()
    })
    await page.submit('list')
    await page.waitFor('#list .result', /^The service cannot be reached\.$/)
    await page.waitFor('#service', /^ready$/)
  })
})
