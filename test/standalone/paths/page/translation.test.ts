import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { memoryStore } from '../../../../src/index.ts'
import {
  skipWithoutChromium,
  openAsAda,
  createStoreWithFerns,
  type WebUiPage,
} from '../../../support/page/web-ui-page.ts'
import { translate, translatePage } from '../../../support/page/translate.ts'

/** Opens the web UI with a clipboard and a translator that ignores `translate="no"`. */
async function openFullyTranslated(t: TestContext): Promise<WebUiPage> {
  const page = await openAsAda(t, { store: createStoreWithFerns(21) })
  for (const name of ['clipboard-read', 'clipboard-write'] as const) {
    await page.page.browserContext().setPermission(page.url, { permission: { name }, state: 'granted' })
  }
  await translatePage(page.page, true)
  return page
}

suite('a browser translator that replaces text nodes', { skip: skipWithoutChromium }, () => {
  for (const limit of ['10', '25', '100']) {
    test(`doesn't change limit=${limit} to limit=${translate(limit)} in requests`, async (t) => {
      const page = await openFullyTranslated(t)
      if (limit === '10') await page.page.select('#page-size', '25')
      const response = page.page.waitForResponse((response) => response.url().includes(`limit=${limit}`))
      await page.page.select('#page-size', limit)
      await response
      assert.equal(page.requests.at(-1), `GET /plants?limit=${limit}&include=id`)
    })
  }

  test("doesn't change the curl command that is copied", async (t) => {
    const page = await openFullyTranslated(t)
    await page.clickInRow('2', 'Delete')
    await page.clickInRow('2', 'Confirm')
    await page.waitForText('#message', /Deleted/)
    await page.waitForList()
    await page.openLogEntry(2)
    await page.evaluate(`navigator.clipboard.writeText('')`)
    await page.page.click('#log li details[open] button')
    await page.page.waitForFunction(`navigator.clipboard.readText()`)
    assert.equal(
      await page.evaluate('navigator.clipboard.readText()'),
      `curl -i -X DELETE '${page.url}/plants/2' \\\n  -H "Authorization: Bearer $TOKEN"`,
    )
  })

  test("doesn't change the selected curl command if there is no clipboard", async (t) => {
    const page = await openAsAda(t)
    const { curl } = await page.openLogEntry()
    await page.evaluate(`Object.defineProperty(navigator, 'clipboard', { value: undefined })`)
    await page.evaluate(`document.querySelector('#log .curl').textContent = 'translated'`)
    await page.clickButton('#log', 'Copy')
    await page.waitForText('#log-message', /Selected/)
    assert.equal(await page.evaluate('getSelection().toString()'), curl)
  })

  test("doesn't change ids, names, tags, requests and responses", async (t) => {
    const store = memoryStore()
    void store.create('ada', { id: 7n, name: 'Fern 7', tag: 'hardy 7' })
    void store.create('ada', { id: 8n, name: `Long ${'x'.repeat(200)}`, tag: 'hardy 8' })
    const page = await openAsAda(t, { store })
    await translatePage(page.page)
    await page.fillField('#create', translate('Id'), '9007199254740993')
    await page.fillField('#create', translate('Name'), 'Moss 1')
    await page.clickButton('#create', translate('Add'))
    await page.waitForText('#message', /\u2068Moss 1\u2069/)
    await page.waitForText('#range', /\u20687\u2069.*\u20689007199254740993\u2069/)
    const { summary, curl, response } = await page.openLogEntry(2)
    assert.match(summary, /^POST \/plants 200 OK \d+ ms$/)
    assert.match(curl, /-d '{"id":9007199254740993,"name":"Moss 1"}'$/)
    assert.match(response, /^Content-Type: [^]*{"name":"Moss 1"}$/)
    assert.deepEqual(await page.getListedPlants('id', 'tag'), [
      ['7', 'hardy 7'],
      ['8', 'hardy 8'],
      ['9007199254740993'],
    ])
    assert.doesNotMatch((await page.getListedPlants('name')).join(), /[‹›]/)
    await page.fillField('#create', translate('Id'), '7')
    await page.fillField('#create', translate('Name'), 'Fern')
    await page.clickButton('#create', translate('Add'))
    await page.waitForText('#new-id-error', /\u20687\u2069/)
  })

  test("doesn't break any action of the web UI, or change its requests", async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(21) })
    await translatePage(page.page)
    await page.clickButton('#create', translate('Add'))
    assert.deepEqual(await page.getInvalidFieldIds(), ['new-id', 'new-name'])
    await page.fillField('#create', translate('Id'), '1')
    await page.fillField('#create', translate('Name'), 'Moss')
    assert.deepEqual(await page.getInvalidFieldIds(), [])
    await page.clickButton('#create', translate('Add'))
    await page.waitForText('#new-id-error', /already exists/)
    assert.deepEqual(await page.getInvalidFieldIds(), ['new-id'])

    await page.clickButton('#plants', translate('Next'))
    await page.waitForText('#range', /\u206811\u2069/)
    await page.clickButton('#plants', translate('Previous'))
    await page.waitForText('#range', /\u20681\u2069/)
    await page.clickInRow('1', 'Delete')
    await page.clickInRow('1', 'Cancel')
    await page.clickInRow('1', 'Delete')
    await page.clickInRow('1', 'Confirm')
    await page.waitForText('#range', /\u20682\u2069.*\u206811\u2069/)
    await page.clickInRow('2', 'Delete')
    await page.clickInRow('2', 'Confirm')
    await page.waitForText('#range', /\u20683\u2069.*\u206812\u2069/)
    assert.deepEqual(
      page.requests.filter((request) => !request.startsWith('GET')),
      ['POST /plants', 'DELETE /plants/1', 'DELETE /plants/2'],
    )

    await page.clickButton('header', translate('Token set'))
    await page.clickButton('#token-form', translate('Forget'))
    await page.waitForText('#token-button', /Enter token/)
    assert.deepEqual(await page.getListedPlants(), [])
  })

  test("isn't triggered when unchanged text is rendered again", async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(1) })
    await page.waitForText('#service', /^Ready$/)
    await translatePage(page.page)
    await page.evaluate(`globalThis.translated = Array.from(document.querySelectorAll('font'))`)
    // The web UI renders its state after each character.
    await page.fillField('#create', translate('Id'), '42')
    assert.equal(await page.evaluate(`translated.filter((font) => !font.isConnected).length`), 0)
  })
})

test(
  'browser extensions that add elements inside and after forms do not break the web UI',
  { skip: skipWithoutChromium },
  async (t) => {
    const page = await openAsAda(t)
    for (const form of ['create', 'go-to', 'token-form']) {
      await page.evaluate(`(() => {
      const form = document.querySelector('#${form}')
      form.prepend(Object.assign(document.createElement('input'), { value: 'x' }))
      form.after(document.createElement('div'))
    })()`)
    }
    await page.createPlant('1', 'Fern')
    assert.deepEqual(await page.fetchPlants(), [{ name: 'Fern' }])
    assert.match((await page.openLogEntry(2)).summary, /^POST \/plants 200 OK/)
  },
)
