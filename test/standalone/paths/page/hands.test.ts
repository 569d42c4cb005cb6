import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { SerializedAXNode } from 'puppeteer-core'
import { memoryStore } from '../../../../src/index.ts'
import { openPage } from '../../../support/page/browser.ts'
import { needsChromium } from '../../../support/page/chromium.ts'
import { FIELDS, REQUESTS, SteeredPage } from '../../../support/page/steered.ts'
import { TOKEN } from '../../../support/program/program.ts'

const NONE = 'Enter a token first: then its plants stand here.'

suite('under the hands of a person, the page', { skip: needsChromium }, () => {
  for (const form of ['create', 'delete', 'list'] as const) {
    test(`sends the form to ${form} once while it waits, by mouse, key or whatever presses its button`, async (t) => {
      const steered = await SteeredPage.open(t)
      const before = steered.count(REQUESTS[form])
      const release = steered.hold(REQUESTS[form])
      await steered.send(form)
      await steered.press(form)
      await steered.page.page.keyboard.press('Enter')
      const busy = await steered.page.evaluate(`document.querySelector('#${form} button').ariaDisabled`)
      await steered.page.evaluate(`document.querySelector('#${form}').requestSubmit()`)
      release()
      await steered.page.waitFor(`#${form} .result`, /Created|Deleted|Page 1/)
      assert.deepEqual([busy, steered.count(REQUESTS[form]) - before], ['true', 1])
    })
  }

  for (const form of ['create', 'delete'] as const) {
    test(`lets a second click on ${form} pass that comes after the response`, async (t) => {
      const steered = await SteeredPage.open(t)
      await steered.send(form)
      await steered.page.waitFor(`#${form} .result`, /Created|Deleted/)
      await steered.press(form)
      assert.match(await steered.page.text(`#${form} .result`), /Created|Deleted/)
      assert.deepEqual([steered.count(REQUESTS[form]), await steered.wrong()], [1, []])
    })
  }

  test('keeps the token at a second click on "Use token"', async (t) => {
    const page = await openPage(t)
    await page.fill('#token-form', 'Token', TOKEN)
    await page.press('#token-form', 'Use token')
    await page.press('#token-form', 'Use token')
    await page.waitFor('#access', /may/)
    assert.deepEqual(
      [await page.text('#token-error'), await page.text('#list .result')],
      ['', 'Page 1: 0 plants. The list ends here.'],
    )
  })

  for (const [form, label, field] of [
    ['create', 'Id', 'new-id'],
    ['delete', 'Id', 'delete-id'],
    ['list', 'After id (optional)', 'list-after'],
  ] as const) {
    test(`does not send the form to ${form} with an id that is none`, async (t) => {
      const steered = await SteeredPage.open(t)
      const { length } = steered.requests
      for (const text of ['..', '.', '01', '1e3', '9223372036854775808', 'x']) {
        await steered.send(form, { ...FIELDS[form], [label]: text })
        await steered.page.waitFor(`#${field}-error`, /^id must be a whole number from -9\d+ to 9\d+, in digits\.$/)
        assert.deepEqual([steered.requests.length, await steered.wrong()], [length, [field]])
        await steered.page.fill(`#${form}`, label, '4')
        assert.deepEqual(await steered.wrong(), [])
      }
    })
  }

  test('does not send what is required and empty', async (t) => {
    const steered = await SteeredPage.open(t)
    const { length } = steered.requests
    await steered.send('create', {})
    await steered.send('delete', {})
    assert.deepEqual([steered.requests.length, await steered.wrong()], [length, ['new-id', 'new-name', 'delete-id']])
  })

  for (const [form, status, type, body] of [
    ['create', 200, 'text/html', '<h1>Log in first</h1>'],
    ['create', 200, 'text/html', '{"name":"Moss"}'],
    ['create', 200, 'application/json', '{"name":1}'],
    ['create', 429, 'application/json', '{"error":"slow_down"}'],
    ['create', 429, 'application/json', '{"error":40900,"message":"x"}'],
    ['delete', 200, 'text/html', '<h1>Log in first</h1>'],
    ['delete', 200, 'application/json', '{"name":"Moss"}'],
    ['list', 200, 'application/json', '[{"name":"without an id"}]'],
    ['list', 200, 'application/json', '[{"id":1,"name":1}]'],
    ['list', 200, 'application/json', '[{"id": 9007199254740993,"name":"with an id that would be rounded"}]'],
  ] as const) {
    test(`takes ${status} with ${body} as ${type} for no response to ${form}`, async (t) => {
      const steered = await SteeredPage.open(t)
      steered.answer(REQUESTS[form], status, type, body)
      await steered.send(form)
      await steered.page.waitFor(`#${form} .result`, /^\d+ [\w ]+: this response is not from plant-store\./)
      assert.equal((await steered.page.text(`#${form} .result`)).includes('Nobody knows'), form !== 'list')
      const typed = await steered.value(form === 'delete' ? 'delete-id' : 'new-id')
      assert.equal(typed, FIELDS[form]['Id'] ?? '')
    })
  }

  test('keeps what is typed while a create is under way, and the request in view', async (t) => {
    const steered = await SteeredPage.open(t)
    const release = steered.hold('POST')
    await steered.send('create')
    await steered.page.fill('#create', 'Id', '43')
    assert.equal(await steered.page.text('#create + .exchange .response'), 'Waiting for it …')
    release()
    await steered.page.waitFor('#create .result', /^Created/)
    assert.match(await steered.page.text('#create + .exchange .request'), /"id":42,/)
    assert.deepEqual([await steered.value('new-id'), await steered.value('new-name')], ['43', 'Moss'])
  })

  test('says an error of what was sent in words, if something else stands in the field by then', async (t) => {
    const steered = await SteeredPage.open(t)
    const release = steered.hold('POST')
    await steered.send('create', { Id: '1', Name: 'Moss' })
    await steered.page.fill('#create', 'Id', '43')
    release()
    await steered.page.waitFor('#create .result', /^409 Conflict: You already have a plant with this id/)
    assert.deepEqual(await steered.wrong(), [])
  })

  test('goes to the next page, also if a create ends in between', async (t) => {
    const steered = await SteeredPage.open(t)
    const createNow = steered.hold('POST')
    await steered.send('create')
    const listNow = steered.hold('GET /plants')
    await steered.page.press('#list', 'Next')
    createNow()
    await steered.page.waitFor('#create .result', /^Created/)
    listNow()
    await steered.page.waitFor('#list .result', /^Page 2: 10 plants/)
  })

  test('takes a token that is accepted again, and shows no plants until then', async (t) => {
    const steered = await SteeredPage.open(t)
    const stop = steered.answer('GET /plants', 401, 'application/json', '{"error":40101,"message":"Refused."}')
    await steered.send('list')
    await steered.page.waitFor('#access', /^refused$/)
    assert.deepEqual([await steered.page.plants(), await steered.wrong()], [[], ['token']])
    stop()
    await steered.send('list')
    await steered.page.waitFor('#access', /^may read/)
    assert.deepEqual([await steered.page.text('#token-error'), await steered.wrong()], ['', []])
  })

  test('says of a token what it was seen to do, with no request for that', async (t) => {
    const steered = await SteeredPage.open(t, { tokens: { [TOKEN]: { owner: 'ada', access: 'read' } } })
    assert.deepEqual(
      [await steered.page.text('#access'), steered.count('DELETE')],
      ['may read; not seen to write yet', 0],
    )
    await steered.send('create')
    await steered.page.waitFor('#create .result', /^403 Forbidden: This bearer token may only read\.$/)
    assert.deepEqual(
      [await steered.page.text('#access'), await steered.page.text('#token-error')],
      ['may only read', ''],
    )
  })

  test('has no token refused that was not given', async (t) => {
    const page = await openPage(t)
    await page.press('#list', 'List')
    await page.waitFor('#list .result', /^401/)
    assert.equal(await page.text('#access'), 'none yet')
  })

  for (const isPending of [false, true]) {
    test(`forgets all with the token, ${isPending ? 'a create that is under way' : 'what it created'} too`, async (t) => {
      const steered = await SteeredPage.open(t)
      const release = steered.hold(isPending ? 'POST' : 'none')
      await steered.send('create')
      await steered.page.waitFor('#create + .exchange', isPending ? /Waiting/ : /200 OK/)
      await steered.page.waitFor('#list .result', /^Page/)
      const lists = steered.count('GET /plants')
      await steered.page.fill('#delete', 'Id', '42')
      await steered.page.press('#token-form', 'Forget it')
      release()
      await steered.page.page.waitForNetworkIdle({ idleTime: 100 })
      assert.doesNotMatch(await steered.page.text('main'), /Moss|Fern|42/)
      assert.deepEqual([await steered.page.text('#access'), await steered.page.text('#none')], ['none yet', NONE])
      assert.deepEqual([steered.count('GET /plants'), await steered.wrong()], [lists, []])
      for (const id of ['new-id', 'new-name', 'delete-id']) assert.equal(await steered.value(id), '')
    })
  }

  test('is heard: places that speak are there from the start, and each button, text and field has its name', async (t) => {
    const { page } = await openPage(t)
    const nodes: SerializedAXNode[] = []
    const walk = (node: SerializedAXNode): void => {
      nodes.push(node)
      node.children?.forEach(walk)
    }
    walk((await page.accessibility.snapshot({ interestingOnly: false }))!)
    const named = (role: string): (string | undefined)[] =>
      nodes.filter((node) => node.role === role).map(({ name }) => name)
    assert.deepEqual([named('alert').length, named('status').length], [6, 5])
    const titles = ['Create a plant', 'List plants', 'Delete a plant']
    assert.deepEqual(
      named('button').filter((name) => name?.startsWith('Copy')),
      titles.map((title) => `Copy the request: ${title}`),
    )
    assert.deepEqual(
      named('group'),
      titles.flatMap((title) => [`Request: ${title}`, `Response: ${title}`]),
    )
    const required = nodes.filter(({ required }) => required).map(({ name }) => name)
    assert.deepEqual(required, ['Token', 'Id', 'Name', 'Id'])
  })

  test('leaves a name unfolded when the list comes again, and its focus ring whole', async (t) => {
    const store = memoryStore()
    void store.create('ada', { id: 1n, name: 'x'.repeat(200) })
    const { page } = await SteeredPage.open(t, { store })
    await page.page.click('#plants summary')
    await page.create('2', 'Moss')
    await page.waitFor('#plants', /Moss/)
    assert.equal(await page.evaluate(`document.querySelector('#plants details').open`), true)
    const cutters = `getComputedStyle(document.querySelector('#plants li')).overflow`
    assert.equal(await page.evaluate(cutters), 'visible')
  })

  test('shows the marks that turn the direction of a curl line, and sends the same name', async (t) => {
    const steered = await SteeredPage.open(t)
    const name = 'Moss \u202enretsae\u2066'
    await steered.page.create('42', name)
    for (const part of ['request', 'response']) {
      assert.match(await steered.page.text(`#create + .exchange .${part}`), /"name":"Moss \\u202enretsae\\u2066"/)
    }
    assert.doesNotMatch(await steered.page.text('#create .result'), /\u202e/)
    assert.deepEqual(await steered.page.kept('?after=41'), [{ name }])
  })
})
