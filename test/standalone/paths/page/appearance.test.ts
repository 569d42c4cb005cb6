import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { memoryStore } from '../../../../src/index.ts'
import {
  skipWithoutChromium,
  openAsAda,
  openPage,
  createStoreWithFerns,
  type WebUiPage,
} from '../../../support/page/web-ui-page.ts'
import { TOKEN } from '../../../support/program/program.ts'
import { importTool } from '../../../support/package/extra-packages.ts'
import type { AccessibilityNode } from '../../../support/page/puppeteer.ts'

const SCHEMES = ['light', 'dark'] as const

/**
 * `deviceScaleFactor` simulates zoom: at 200%, a window of 1,280 pixels is 640 CSS pixels wide and has a factor of 2.
 */
const VIEWPORTS = [
  { width: 320, deviceScaleFactor: 1 },
  { width: 320, deviceScaleFactor: 4 },
  { width: 640, deviceScaleFactor: 2 },
  { width: 820, deviceScaleFactor: 1 },
  { width: 1280, deviceScaleFactor: 1 },
  { width: 2000, deviceScaleFactor: 1 },
]

/** Takes a screenshot of an element and its surroundings, without the mouse pointer, and by default without focus. */
async function takeScreenshot({ page }: WebUiPage, selector: string, blursFocus = true): Promise<string> {
  if (blursFocus) await page.evaluate('document.activeElement.blur()')
  await page.mouse.move(0, 0)
  const element = (await page.waitForSelector(selector))!
  await element.scrollIntoView()
  const { x, y, width, height } = (await element.boundingBox())!
  const scroll = (await page.evaluate('scrollY')) as number
  const clip = { x: x - 5, y: y - 5 + scroll, width: width + 10, height: height + 10 }
  return page.screenshot({ clip, encoding: 'base64' })
}

/** The parts of an axe report that the tests use. */
interface AxeResults {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[]
}

async function assertAccessible({ page }: WebUiPage, what: string): Promise<void> {
  if (!(await page.evaluate(`'axe' in globalThis`))) {
    const { default: axe } = await importTool<{ default: { source: string } }>('axe-core')
    await page.evaluate(axe.source)
  }
  const { violations } = (await page.evaluate(`axe.run({ resultTypes: ['violations'] })`)) as AxeResults
  assert.deepEqual(
    violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]),
    [],
    what,
  )
}

/** Opens the web UI with plants that are hard to lay out: long names, an empty name, another writing direction. */
async function openCrowded(t: TestContext): Promise<WebUiPage> {
  const store = memoryStore()
  const long = 'Donaudampfschiffahrtsgesellschaft'.repeat(5)
  for (const [index, name] of ['Monstera deliciosa', 'x'.repeat(60_000), '', 'نخلة التمر', long].entries()) {
    void store.create('ada', { id: BigInt(index), name, tag: name.slice(0, 1000) })
  }
  for (let id = -9223372036854775808n; id < -9223372036854775808n + 5n; id++)
    void store.create('ada', { id, name: 'Fern', tag: 'wet' })
  for (let id = 10n; id < 20n; id++) void store.create('ada', { id, name: 'Fern' })
  return openPage(t, { store })
}

async function enterToken(page: WebUiPage): Promise<void> {
  await page.fillField('#token-form', 'Token', TOKEN)
  await page.clickButton('#token-form', 'Use')
  await page.waitForText('#range', /More follow/)
}

/** The states of the web UI, each reached from the previous state. */
const STATES: readonly (readonly [name: string, reach: (page: WebUiPage) => Promise<void>])[] = [
  ['no token', (page) => page.waitForText('#service', /^Ready$/)],
  [
    'a rejected token',
    async (page) => {
      await page.fillField('#token-form', 'Token', 'wrong')
      await page.clickButton('#token-form', 'Use')
      await page.waitForText('#token-error', /./)
    },
  ],
  ['a list', enterToken],
  [
    'errors',
    async (page) => {
      await page.submitPlant('x', '')
      await page.goToId('x')
    },
  ],
  ['a question', (page) => page.clickInRow('1', 'Delete')],
  ['an expanded name', (page) => page.page.click('td.name summary')],
  [
    'an open request',
    async (page) => {
      await page.evaluate(`document.querySelector('#log details').open = true`)
      await page.openLogEntry()
    },
  ],
  ['an open token form', (page) => page.clickButton('header', 'Token set')],
]

suite('the web UI', { skip: skipWithoutChromium }, () => {
  test('passes axe in each state and color scheme, on phones, tablets and desktops', async (t) => {
    const page = await openCrowded(t)
    const colors = new Set<string>()
    for (const [name, reach] of STATES) {
      await reach(page)
      for (const width of [360, 768, 1440]) {
        await page.page.setViewport({ width, height: 900 })
        for (const value of SCHEMES) {
          await page.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }])
          colors.add(await page.evaluate('getComputedStyle(document.body).backgroundColor'))
          await assertAccessible(page, `${name}, ${value}, ${width} px`)
        }
      }
    }
    assert.equal(colors.size, 2)
  })

  test('never scrolls horizontally or hides anything beyond the edge of the window', async (t) => {
    const page = await openCrowded(t)
    const outside = `Array.from(document.querySelectorAll('body *')).filter((element) => {
      const { left, right } = element.getBoundingClientRect()
      return left < 0 || right > innerWidth
    }).length`
    for (const [name, reach] of STATES) {
      await reach(page)
      for (const view of VIEWPORTS) {
        await page.page.setViewport({ ...view, height: 900 })
        const what = `${name}, ${view.width} px, ${view.deviceScaleFactor}`
        assert.equal(await page.evaluate('document.documentElement.scrollWidth'), view.width, what)
        assert.equal(await page.evaluate(outside), 0, what)
      }
    }
  })

  test('keeps the layout stable when a row asks for confirmation, a plant has a long id or name, or the first plant is added', async (t) => {
    for (const width of [360, 768, 1440]) {
      const page = await openAsAda(t, { store: createStoreWithFerns(5) })
      await page.page.setViewport({ width, height: 900 })
      /** Returns the horizontal positions of the columns, and the vertical positions of the first rows. */
      const measure = (): Promise<unknown> =>
        page.evaluate(`[
          ...Array.from(document.querySelectorAll('tbody tr:first-child > *, #create > *'), (cell) => {
            const { left, right } = cell.getBoundingClientRect()
            return [left, right]
          }),
          ...Array.from(document.querySelectorAll('tbody tr:nth-child(-n+5)'), (row) => {
            const { top, bottom } = row.getBoundingClientRect()
            return [top + scrollY, bottom + scrollY]
          }),
        ]`)
      const before = await measure()
      await page.clickInRow('2', 'Delete')
      assert.deepEqual(await measure(), before, `asking, ${width} px`)
      await page.clickInRow('2', 'Cancel')
      assert.deepEqual(await measure(), before, `canceled, ${width} px`)
      await page.createPlant('6', 'Donaudampfschiffahrtsgesellschaft'.repeat(10), 'x'.repeat(300))
      assert.deepEqual(await measure(), before, `a long name, ${width} px`)
      await page.createPlant('9223372036854775807', 'Sequoia')
      assert.deepEqual(await measure(), before, `a long id, ${width} px`)
    }
  })

  test('can be used with the keyboard alone, and adds ten plants with one Enter each', async (t) => {
    const page = await openPage(t)
    const { keyboard } = page.page
    async function tabTo(name: string): Promise<void> {
      for (let stops = 0; (await page.getFocused()) !== name; stops++) {
        assert.ok(stops < 30, `${name} can't be reached`)
        await keyboard.press('Tab')
      }
      // The focused element has a visible outline.
      assert.equal(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle'), 'solid', name)
    }
    await tabTo('token')
    await keyboard.type(TOKEN)
    await keyboard.press('Enter')
    await page.waitForText('#empty', /No plants yet/)
    assert.equal(await page.getFocused(), 'plants-title')
    await tabTo('new-id')
    await tabTo('new-name')
    for (let id = 1; id <= 10; id++) {
      await keyboard.type(`Fern ${id}`)
      await keyboard.press('Enter')
      await page.waitForText('#message', new RegExp(`^Added “\u2068Fern ${id}\u2069”`))
      assert.equal(await page.getFocused(), 'new-name')
    }
    await page.waitForText('#range', /^Ids \u20681\u2069 to \u206810\u2069/)
    await tabTo('Delete')
    await keyboard.press('Enter')
    // Holding the key down asks and cancels, but never deletes.
    await keyboard.press('Enter')
    await keyboard.press('Enter')
    assert.equal(await page.getFocused(), 'Cancel')
    await keyboard.press('Tab')
    assert.equal(await page.evaluate('document.activeElement.className'), 'confirm')
    assert.equal(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle'), 'solid')
    await keyboard.press('Enter')
    await page.waitForText('#message', /^Deleted “\u2068Fern 1\u2069”/)
    assert.match(await page.evaluate('document.activeElement.ariaLabel'), /^Delete plant 2, /)
    await page.waitForList()
    assert.deepEqual(
      await page.getListedPlants('id'),
      ['2', '3', '4', '5', '6', '7', '8', '9', '10'].map((id) => [id]),
    )
    await tabTo('previous')
    await tabTo('next')
    await tabTo('page-size')
  })

  test('closes the token form with Escape, and returns the focus to the token button', async (t) => {
    const page = await openAsAda(t)
    await page.clickButton('header', 'Token set')
    assert.equal(await page.getFocused(), 'token')
    assert.equal(await page.evaluate(`document.querySelector('#token-button').ariaExpanded`), 'true')
    await page.page.keyboard.press('Escape')
    assert.equal(await page.getFocused(), 'token-button')
    assert.equal(await page.evaluate(`document.querySelector('#token-button').ariaExpanded`), 'false')
  })

  test('contains its live regions from the start, and gives all buttons, texts and fields accessible names', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(1) })
    await page.openLogEntry()
    await page.clickInRow('1', 'Delete')
    const nodes: AccessibilityNode[] = []
    const walk = (node: AccessibilityNode): void => {
      nodes.push(node)
      node.children?.forEach(walk)
    }
    walk(await page.page.accessibility.snapshot({ interestingOnly: false }))
    const named = (...roles: string[]) => nodes.filter(({ role }) => roles.includes(role)).map(({ name }) => name)
    assert.deepEqual([named('alert').length, named('status').length], [4, 5])
    assert.deepEqual(
      named('button'),
      ['Token set', 'Forget the token from the link', 'Go', 'Add', 'Cancel', 'Delete'].concat([
        'Previous',
        'Next',
        'Copy',
      ]),
    )
    assert.deepEqual(named('group').filter(Boolean), ['Delete plant 1, \u2068Fern 1\u2069', 'Request', 'Response'])
    assert.deepEqual(named('table', 'columnheader'), ['Plants', 'Id', 'Name', 'Tag', 'Action'])
    assert.deepEqual(named('textbox', 'combobox'), ['Go to id', 'Id', 'Name', 'Tag (optional)', 'Page size'])
    const required = nodes.filter(({ required }) => required).map(({ name }) => name)
    assert.deepEqual(required, ['Id', 'Name'])
  })

  test('shows the disabled, busy, invalid and focused states with forced colors', async (t) => {
    const page = await openPage(t, { store: createStoreWithFerns(11) }, `#token=${TOKEN}`)
    const session = await page.page.createCDPSession()
    await session.send('Emulation.setEmulatedMedia', { features: [{ name: 'forced-colors', value: 'active' }] })
    await page.waitForText('#range', /More follow/)
    const button = (name: string) => `#plants ::-p-aria([name="${name}"][role="button"])`

    const first = [await takeScreenshot(page, button('Previous')), await takeScreenshot(page, button('Next'))]
    await page.clickButton('#plants', 'Next')
    await page.waitForText('#range', /End/)
    assert.notEqual(await takeScreenshot(page, button('Previous')), first[0], 'Previous')
    assert.notEqual(await takeScreenshot(page, button('Next')), first[1], 'Next')

    const idle = await takeScreenshot(page, button('Add'))
    await page.page.focus(button('Add'))
    assert.notEqual(await takeScreenshot(page, button('Add'), false), idle, 'focus')
    const release = page.blockRequests('POST')
    await page.submitPlant('42', 'Moss')
    assert.notEqual(await takeScreenshot(page, button('Add')), idle, 'busy')
    release()
    await page.waitForText('#message', /^Added/)

    const valid = await takeScreenshot(page, '#go-to-id')
    await page.goToId('x')
    assert.deepEqual(await page.getInvalidFieldIds(), ['go-to-id'])
    await page.fillField('#go-to', 'Go to id', '')
    await page.evaluate(`document.querySelector('#go-to-id').ariaInvalid = 'true'`)
    assert.notEqual(await takeScreenshot(page, '#go-to-id'), valid, 'invalid')
  })
})
