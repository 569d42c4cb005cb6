import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import axe from 'axe-core'
import { memoryStore } from '../../../../src/index.ts'
import { openAsAda, openPage, type PlantPage, type View } from '../../../support/page/browser.ts'
import { needsChromium } from '../../../support/page/chromium.ts'

/** The page with all that it can have in view: long texts, errors, tags, several pages. */
async function openFull(t: TestContext, view: View): Promise<PlantPage> {
  const store = memoryStore()
  const names = [
    'Monstera deliciosa',
    'x'.repeat(60_000),
    '',
    'نخلة التمر',
    'Donaudampfschiffahrtsgesellschaft'.repeat(5),
  ]
  for (const [index, name] of names.entries()) {
    void store.create('ada', { id: BigInt(index), name, tag: name.slice(0, 1000) })
  }
  for (let id = 10n; id < 20n; id++) void store.create('ada', { id, name: 'Fern' })
  const page = await openAsAda(t, { store }, view)
  await page.press('#create', 'Create')
  await page.waitFor('#new-id-error', /./)
  await page.fill('#delete', 'Id', '42')
  await page.press('#delete', 'Delete')
  await page.waitFor('#delete-id-error', /./)
  await page.page.click('#plants li:last-child button')
  await page.page.click('#plants summary')
  return page
}

async function assertAccessible(page: PlantPage): Promise<void> {
  await page.page.evaluate(axe.source)
  const { violations } = await page.evaluate<axe.AxeResults>('axe.run()')
  assert.deepEqual(
    violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]),
    [],
  )
}

suite('the page', { skip: needsChromium }, () => {
  for (const scheme of ['light', 'dark'] as const) {
    test(`passes axe in the ${scheme} scheme, before a token is entered`, async (t) => {
      const page = await openPage(t, {}, { scheme })
      await page.waitFor('#service', /^ready$/)
      await assertAccessible(page)
    })

    for (const width of [320, 1280]) {
      test(`passes axe in the ${scheme} scheme, full, ${width} px wide`, async (t) => {
        await assertAccessible(await openFull(t, { scheme, width }))
      })
    }
  }

  test('has a colour scheme of its own for the dark', async (t) => {
    const colours: string[] = []
    for (const scheme of ['light', 'dark'] as const) {
      const page = await openPage(t, {}, { scheme })
      colours.push(await page.evaluate('getComputedStyle(document.body).backgroundColor'))
    }
    assert.notEqual(colours[0], colours[1])
  })

  for (const view of [
    { width: 320 },
    { width: 640, zoom: 2 },
    { width: 320, zoom: 4 },
    { width: 820 },
    { width: 2000 },
  ]) {
    test(`has no horizontal scroll bar, ${view.width} px wide at a zoom of ${view.zoom ?? 1}`, async (t) => {
      const page = await openFull(t, view)
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), view.width)
      const outside = `Array.from(document.querySelectorAll('main *')).filter((element) => {
        const { left, right } = element.getBoundingClientRect()
        return left < 0 || right > innerWidth
      }).length`
      assert.equal(await page.evaluate(outside), 0)
    })
  }

  test('is used by keyboard alone, in the order of the page', async (t) => {
    const page = await openPage(t)
    const { keyboard } = page.page
    const stops: string[] = []
    async function tabTo(id: string): Promise<void> {
      for (let stop = ''; stop !== id; stops.push(stop)) {
        await keyboard.press('Tab')
        stop = await page.evaluate('document.activeElement.id || document.activeElement.innerText')
      }
    }
    await tabTo('token')
    await keyboard.type('YWRh')
    await keyboard.press('Enter')
    await page.waitFor('#none', /No plants yet/)
    await tabTo('new-id')
    await keyboard.type('42')
    await tabTo('new-name')
    await keyboard.type('Fern')
    await keyboard.press('Enter')
    await page.waitFor('#plants', /Fern/)
    assert.equal(await page.evaluate('document.activeElement.id'), 'new-name')
    await tabTo('Delete')
    await keyboard.press('Enter')
    await keyboard.press('Enter')
    await keyboard.press('Enter')
    assert.equal(await page.evaluate('document.activeElement.innerText'), 'Keep')
    await tabTo('Delete for good')
    await keyboard.press('Enter')
    // The row goes at the response to the delete; the list that is asked for then comes later.
    await page.waitFor('#list .result', /^Deleted\. Page 1: 0 plants/)
    assert.equal(await page.evaluate('document.activeElement.innerText'), 'List')
    await tabTo('delete-id')
    assert.deepEqual(
      stops.filter((stop) => stop.length < 20),
      ['token', 'Use token', 'forget', 'new-id', 'new-name', 'new-tag', 'Create', 'Copy']
        .concat(['list-limit', 'list-after', 'List', 'previous', 'next', 'Delete', 'Delete for good'])
        .concat(['previous', 'next', 'Copy', 'delete-id']),
    )
  })

  test('shows where the focus is', async (t) => {
    const page = await openPage(t)
    await page.page.keyboard.press('Tab')
    assert.equal(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle'), 'solid')
  })

  test('tells a screen reader of results and errors, and names every field', async (t) => {
    const page = await openFull(t, {})
    const live = await page.evaluate<string[]>(
      `Array.from(document.querySelectorAll('[role=status], [role=alert]'), (place) => place.innerText).filter(Boolean)`,
    )
    assert.deepEqual(live, [
      'ready',
      'may read and write',
      'id must be a whole number from -9223372036854775808 to 9223372036854775807, in digits.',
      'A plant needs a name.',
      'Delete plant 14? Nothing brings it back. Page 1: 10 plants. More follow.',
      'You have no plant with this id.',
      '404 Not Found.',
    ])
    const described = await page.evaluate(
      `document.querySelector('#new-id').getAttribute('aria-describedby').split(' ')
         .map((id) => document.getElementById(id).innerText).join(' ')`,
    )
    assert.match(String(described), /^Yours to choose: .* id must be a whole number/)
  })
})
