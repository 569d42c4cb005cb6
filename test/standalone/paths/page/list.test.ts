import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { memoryStore, type PlantStoreOptions, type Store } from '../../../../src/index.ts'
import { createListener, openAsAda, serveListener, type PlantPage } from '../../../support/page/browser.ts'
import { needsChromium } from '../../../support/page/chromium.ts'
import { TOKEN } from '../../../support/program/program.ts'

function storeOf(count: number): Store {
  const store = memoryStore()
  for (let id = 1; id <= count; id++) void store.create('ada', { id: BigInt(id), name: `Fern ${id}` })
  return store
}

function ferns(first: number, last: number): string[][] {
  return Array.from({ length: last - first + 1 }, (_, i) => [`Fern ${first + i}`])
}

suite('the list', { skip: needsChromium }, () => {
  test('says what to do first if there is no plant', async (t) => {
    const page = await openAsAda(t)
    assert.equal(await page.text('#none'), 'No plants yet. Create the first one: an id and a name will do.')
    assert.equal(await page.text('#list .result'), 'Page 1: 0 plants. The list ends here.')
  })

  test('goes from page to page by the links of the service, and back', async (t) => {
    const page = await openAsAda(t, { store: storeOf(25) })
    assert.deepEqual(await page.plants(), ferns(1, 10))
    assert.match(
      await page.text('#list + .exchange .response'),
      /^Link: <\?limit=10&after=10&include=id>; rel="next"$/m,
    )

    await page.press('#list', 'Next')
    await page.waitFor('#list .result', /^Page 2: 10 plants\. More follow\.$/)
    assert.deepEqual(await page.plants(), ferns(11, 20))
    assert.match(await page.text('#list + .exchange .request'), /^curl -i '\S+\/plants\?limit=10&after=10&include=id' /)
    await page.press('#list', 'Next')
    await page.waitFor('#list .result', /^Page 3: 5 plants\. The list ends here\.$/)
    assert.deepEqual(await page.plants(), ferns(21, 25))

    await page.press('#list', 'Previous')
    await page.waitFor('#list .result', /^Page 2/)
    assert.deepEqual(await page.plants(), ferns(11, 20))
  })

  test('keeps the focus on a button that leads no further', async (t) => {
    const page = await openAsAda(t, { store: storeOf(11) })
    await page.press('#list', 'Next')
    await page.waitFor('#list .result', /^Page 2: 1 plant\. The list ends here\.$/)
    assert.equal(await page.evaluate('document.activeElement.id'), 'next')
    assert.equal(await page.evaluate('document.activeElement.ariaDisabled'), 'true')
    await page.page.keyboard.press('Enter')
    assert.deepEqual(await page.plants(), ferns(11, 11))
  })

  test('stays on its page when a plant is deleted from it', async (t) => {
    const page = await openAsAda(t, { store: storeOf(25) })
    await page.press('#list', 'Next')
    await page.waitFor('#list .result', /^Page 2/)
    await page.fill('#delete', 'Id', '11')
    await page.press('#delete', 'Delete')
    await page.waitFor('#plants', /^12Fern 12/)
    await page.waitFor('#list .result', /^Page 2: 10 plants\. More follow\.$/)
  })

  suite('deletes from a row,', () => {
    async function open(t: TestContext, options: Partial<PlantStoreOptions> = {}): Promise<PlantPage> {
      const page = await openAsAda(t, { store: storeOf(3), ...options })
      await page.press('#list', 'Delete plant 2, \u2068Fern 2\u2069')
      await page.waitFor('#list .result', /^Delete plant 2\? Nothing brings it back\./)
      return page
    }

    test('after a second press, goes on at the next row, and says so there', async (t) => {
      const page = await open(t)
      await page.press('#list', 'Delete for good plant 2, \u2068Fern 2\u2069')
      await page.waitFor('#list .result', /^Deleted\. Page 1: 2 plants\./)
      assert.deepEqual(await page.plants('id', 'name'), [
        ['1', 'Fern 1'],
        ['3', 'Fern 3'],
      ])
      assert.equal(await page.evaluate('document.activeElement.ariaLabel'), 'Delete plant 3, \u2068Fern 3\u2069')
      assert.match(await page.text('#delete + .exchange .request'), /^curl -i -X DELETE 'http:\S+\/plants\/2' /)
      assert.deepEqual(page.console, [])
    })

    test('or keeps the plant', async (t) => {
      const page = await open(t)
      await page.press('#list', 'Keep plant 2, \u2068Fern 2\u2069')
      await page.waitFor('#list .result', /^Page 1: 3 plants\./)
      assert.equal(await page.evaluate(`document.querySelectorAll('.confirm:not([hidden])').length`), 0)
    })

    test('and says there why it may not', async (t) => {
      const page = await open(t, { tokens: { [TOKEN]: { owner: 'ada', access: 'read' } } })
      await page.press('#list', 'Delete for good plant 2, \u2068Fern 2\u2069')
      await page.waitFor('#list .result', /^403 Forbidden: This bearer token may only read\. Page 1: 3 plants\./)
    })

    test('with all the digits of its id', async (t) => {
      const store = memoryStore()
      for (const id of [9007199254740992n, 9007199254740993n, 9223372036854775807n]) {
        void store.create('ada', { id, name: `{"id":${id}` })
      }
      const page = await openAsAda(t, { store })
      assert.deepEqual(await page.plants('id'), [['9007199254740992'], ['9007199254740993'], ['9223372036854775807']])
      await page.page.click('li:nth-child(2) button')
      await page.page.click('li:nth-child(2) .confirm')
      await page.waitFor('#list .result', /^Deleted\. Page 1: 2 plants\./)
      assert.deepEqual(await page.plants('name'), [['{"id":9007199254740992'], ['{"id":9223372036854775807']])
    })
  })

  test('has as many plants a page as chosen, from the id on that was typed', async (t) => {
    const page = await openAsAda(t, { store: storeOf(200) })
    await page.page.select('#list-limit', '25')
    await page.fill('#list', 'After id (optional)', '100')
    await page.press('#list', 'List')
    await page.waitFor('#plants', /^101Fern 101/)
    assert.deepEqual(await page.plants(), ferns(101, 125))
  })

  test('follows the links of a service that allows fewer plants', async (t) => {
    const page = await openAsAda(t, { store: storeOf(25), maxLimit: 5 })
    assert.deepEqual(await page.plants(), ferns(1, 5))
    await page.press('#list', 'Next')
    await page.waitFor('#list .result', /^Page 2/)
    assert.deepEqual(await page.plants(), ferns(6, 10))
  })

  test('of 100,000 plants takes no more of the browser than one page of it', async (t) => {
    const page = await openAsAda(t, { store: storeOf(100_000) })
    await page.page.select('#list-limit', '100')
    await page.press('#list', 'List')
    await page.waitFor('#list .result', /^Page 1: 100 plants\. More follow\.$/)
    await page.fill('#list', 'After id (optional)', '99990')
    await page.press('#list', 'List')
    await page.waitFor('#list .result', /^Page 1: 10 plants\. The list ends here\.$/)
    assert.deepEqual(await page.plants(), ferns(99_991, 100_000))
    assert.ok((await page.evaluate<number>(`document.querySelectorAll('*').length`)) < 700)
  })

  test('works under any path that a proxy puts before the service', async (t) => {
    const listener = createListener({ store: storeOf(11) })
    const url = await serveListener(t, (request, response) => {
      request.url = request.url!.replace(/^\/garden/, '')
      listener(request, response)
    })
    const page = await openAsAda(t, `${url}/garden`)
    await page.press('#list', 'Next')
    await page.waitFor('#list .result', /^Page 2: 1 plant/)
    await page.create('12', 'Fern 12')
    await page.waitFor('#list .result', /^Page 2: 2 plants/)
    assert.match(await page.text('#create + .exchange .request'), /\/garden\/plants' /)
  })
})
