import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { memoryStore, type Store } from '../../src/index.ts'
import { importTool } from '../support/extra-packages.ts'
import { openAsAda, openPage, skipWithoutBrowser, TOKEN, type WebUiPage } from '../support/web-ui-page.ts'
import { createStoreWithPlants } from '../support/plant-list.ts'

/** The parts of an axe report that the tests use. */
interface AxeResults {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[]
}

/** Returns a store with plants that are hard to lay out: long names, an empty name, another writing direction. */
function createCrowdedStore(): Store {
  const store = memoryStore()
  const names = ['Monstera deliciosa', 'x'.repeat(3000), '', 'نخلة التمر', 'Donaudampfschiffahrt'.repeat(9)]
  for (const [index, name] of names.entries()) void store.create('ada', { id: BigInt(index), name, tag: name })
  for (let id = -(2n ** 63n); id < -(2n ** 63n) + 30n; id++) void store.create('ada', { id, name: 'Fern', tag: 'wet' })
  return store
}

/** The states of the web UI, each reached from the previous state. */
const STATES: readonly (readonly [name: string, reach: (ui: WebUiPage) => Promise<unknown>])[] = [
  ['no token', (ui) => ui.waitForText('#token-title', /^Enter token$/)],
  [
    'a rejected token',
    async (ui) => {
      await ui.useToken('wrong')
      await ui.waitForText('#token-message', /valid/)
    },
  ],
  [
    'a list',
    async (ui) => {
      await ui.useToken(TOKEN)
      await ui.waitForText('#range', /More follow/)
      await ui.click('#next')
      await ui.waitForText('#range', /End/)
    },
  ],
  ['an invalid id', (ui) => ui.submitPlant('x', 'Moss')],
  ['a question', (ui) => ui.clickInRow(2)],
  ['an open request', (ui) => ui.openLogEntry(1)],
  ['an open token form', (ui) => ui.evaluate(`document.querySelector('#token-panel').open = true`)],
]

suite('the web UI', { skip: skipWithoutBrowser }, () => {
  test('passes axe in each state and color scheme, on phones, tablets and desktops', async (t) => {
    const ui = await openPage(t, { store: createCrowdedStore() })
    const { default: axe } = await importTool<{ default: { source: string } }>('axe-core')
    await ui.evaluate(axe.source)
    for (const [name, reach] of STATES) {
      await reach(ui)
      for (const width of [360, 768, 1440]) {
        await ui.page.setViewport({ width, height: 900 })
        for (const value of ['light', 'dark']) {
          await ui.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }])
          const { violations } = await ui.evaluate<AxeResults>(`axe.run({ resultTypes: ['violations'] })`)
          const found = violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)])
          assert.deepEqual(found, [], `${name}, ${value}, ${width} px`)
        }
      }
    }
  })

  test('never scrolls horizontally or hides anything beyond the edge of the window', async (t) => {
    const ui = await openPage(t, { store: createCrowdedStore() })
    const outside = `Array.from(document.querySelectorAll('body *')).filter((element) => {
      const { left, right } = element.getBoundingClientRect()
      return left < 0 || right > innerWidth
    }).map(({ outerHTML }) => outerHTML)`
    for (const [name, reach] of STATES) {
      await reach(ui)
      for (const width of [320, 640, 960, 1280, 2000]) {
        await ui.page.setViewport({ width, height: 900 })
        const scrollWidth = await ui.evaluate('document.documentElement.scrollWidth')
        assert.deepEqual([scrollWidth, await ui.evaluate(outside)], [width, []], `${name}, ${width} px`)
      }
    }
  })

  for (const fontSize of [24, 32]) {
    test(`keeps names readable if the browser's font is ${fontSize} px high`, async (t) => {
      const store = memoryStore()
      void store.create('ada', { id: 2n ** 63n - 1n, name: 'Monstera deliciosa', tag: 'tropical' })
      const ui = await openPage(t, { store }, `#token=${TOKEN}`, [`--blink-settings=defaultFontSize=${fontSize}`])
      await ui.waitForText('#list', /Monstera/)
      assert.equal(await ui.evaluate('getComputedStyle(document.body).fontSize'), `${fontSize}px`)
      const measure = `(() => {
        const { width, height } = document.querySelector('#list .name').getBoundingClientRect()
        return [width, Math.round(height / ${fontSize * 1.5})]
      })()`
      const [width, lines] = await ui.evaluate<[number, number]>(measure)
      assert.ok(width > 15 * fontSize, `${width} px`)
      assert.equal(lines, 1)
    })
  }

  test('moves nothing when a row asks, or when a plant with a long id or name is added', async (t) => {
    const ui = await openAsAda(t, { store: createStoreWithPlants(5) })
    for (const width of [360, 768, 1440]) {
      await ui.page.setViewport({ width, height: 900 })
      const measure = (): Promise<unknown> =>
        ui.evaluate(`Array.from(document.querySelectorAll('#add > *, #list > :nth-child(-n+5) > *'), (element) => {
          const { left, right, top, bottom } = element.getBoundingClientRect()
          return [left, right, top + scrollY, bottom + scrollY]
        })`)
      const before = await measure()
      await ui.clickInRow(2)
      assert.deepEqual(await measure(), before, `asking, ${width} px`)
      await ui.clickInRow(2)
      await ui.addPlant(`-${2n ** 63n - BigInt(width)}`, 'Donaudampfschiffahrtsgesellschaft'.repeat(10))
      await ui.deletePlant(1)
      await ui.waitForText('#message', /^Deleted/)
      await ui.waitForText('#range', /^Ids 1 to/)
      assert.deepEqual(await measure(), before, `a long id and name, ${width} px`)
    }
  })

  test('can be used with the keyboard alone: adds ten plants with one Enter each, and deletes one', async (t) => {
    const ui = await openPage(t)
    const { keyboard } = ui.page
    async function tabTo(name: string): Promise<void> {
      for (let stops = 0; (await ui.getFocused()) !== name; stops++) {
        assert.ok(stops < 30, `${name} can't be reached`)
        await keyboard.press('Tab')
      }
      assert.notEqual(await ui.evaluate('getComputedStyle(document.activeElement).outlineStyle'), 'none', name)
    }
    await tabTo('token')
    await keyboard.type(TOKEN)
    await keyboard.press('Enter')
    await ui.waitForText('#range', /^No plants yet/)
    await tabTo('new-name')
    for (let id = 1; id <= 10; id++) {
      await keyboard.type(`Fern ${id}`)
      await keyboard.press('Enter')
      await ui.waitForText('#message', new RegExp(`^Added “\u2068Fern ${id}\u2069”`))
    }
    await ui.waitForText('#range', /^Ids 1 to 10\./)
    const label = 'Delete plant 1, “\u2068Fern 1\u2069”'
    await tabTo(label)
    // Holding the key down opens and closes the question, but never deletes.
    for (let count = 0; count < 3; count++) await keyboard.press('Enter')
    await keyboard.press('Tab')
    assert.equal(await ui.getFocused(), label)
    await keyboard.press('Enter')
    await ui.waitForText('#range', /^Ids 2 to 10\./)
    assert.equal(await ui.getFocused(), 'Delete plant 2, “\u2068Fern 2\u2069”')
    await tabTo('next')
  })
})
