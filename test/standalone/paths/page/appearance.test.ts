import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import axe from 'axe-core'
import type { SerializedAXNode } from 'puppeteer-core'
import { memoryStore } from '../../../../src/index.ts'
import {
  skipWithoutChromium,
  openPage,
  createStoreWithFerns,
  type WebUiPage,
} from '../../../support/page/web-ui-page.ts'
import { TOKEN } from '../../../support/program/program.ts'

const SCHEMES = ['light', 'dark'] as const

/** `deviceScaleFactor` simulates zoom: at 200%, a window of 1,280 pixels has a width of 640 CSS pixels and a factor of 2. */
const VIEWPORTS = [
  { width: 320, deviceScaleFactor: 1 },
  { width: 320, deviceScaleFactor: 4 },
  { width: 640, deviceScaleFactor: 2 },
  { width: 820, deviceScaleFactor: 1 },
  { width: 1280, deviceScaleFactor: 1 },
  { width: 2000, deviceScaleFactor: 1 },
]

/** Fills the web UI with everything that it can show: long texts, errors, tags, several list pages. */
async function fillPage(page: WebUiPage): Promise<void> {
  await page.fillField('#token-form', 'Token', TOKEN)
  await page.clickButton('#token-form', 'Use token')
  await page.waitForText('#list .result', /^Page 1: 10 plants/)
  await page.submit('create')
  await page.waitForText('#new-id-error', /./)
  await page.fillAndSubmit('delete', { Id: '42' })
  await page.waitForText('#delete-id-error', /./)
  await page.page.click('#plants li:last-child button')
  await page.page.click('#plants summary')
}

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

async function assertAccessible({ page }: WebUiPage, what: string): Promise<void> {
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate('axe.run()')) as axe.AxeResults
  assert.deepEqual(
    violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]),
    [],
    what,
  )
}

suite('the web UI', { skip: skipWithoutChromium }, () => {
  test('passes axe in both color schemes, never scrolls horizontally, and announces its state', async (t) => {
    const store = memoryStore()
    const long = 'Donaudampfschiffahrtsgesellschaft'.repeat(5)
    for (const [index, name] of ['Monstera deliciosa', 'x'.repeat(60_000), '', 'نخلة التمر', long].entries()) {
      void store.create('ada', { id: BigInt(index), name, tag: name.slice(0, 1000) })
    }
    for (let id = 10n; id < 20n; id++) void store.create('ada', { id, name: 'Fern' })
    const page = await openPage(t, { store })
    await page.waitForText('#service', /^ready$/)
    const colours: string[] = []
    for (const value of SCHEMES) {
      await page.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }])
      colours.push(await page.evaluate('getComputedStyle(document.body).backgroundColor'))
      await assertAccessible(page, value)
    }
    assert.notEqual(colours[0], colours[1])

    await fillPage(page)
    const outside = `Array.from(document.querySelectorAll('main *')).filter((element) => {
      const { left, right } = element.getBoundingClientRect()
      return left < 0 || right > innerWidth
    }).length`
    for (const view of VIEWPORTS) {
      await page.page.setViewport({ ...view, height: 900 })
      const { width, deviceScaleFactor } = view
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width)
      assert.equal(await page.evaluate(outside), 0, `${width} px, ${deviceScaleFactor}`)
      for (const value of width === 320 || width === 1280 ? SCHEMES : []) {
        await page.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }])
        await assertAccessible(page, `${value}, ${width} px, ${deviceScaleFactor}`)
      }
    }
    // With another overflow, the focus ring would be clipped.
    assert.equal(await page.evaluate(`getComputedStyle(document.querySelector('#plants li')).overflow`), 'visible')

    const live = await page.evaluate<string[]>(
      `Array.from(document.querySelectorAll('[role=status], [role=alert]'), (place) => place.innerText).filter(Boolean)`,
    )
    assert.deepEqual(live, [
      'ready',
      'may read and write',
      'id must be a whole number from -9223372036854775808 to 9223372036854775807, in digits.',
      'A plant needs a name.',
      'Delete plant \u206814\u2069? This cannot be undone. Page 1: 10 plants. More follow.',
      'You have no plant with this id.',
      '404 Not Found.',
    ])
    const described = await page.evaluate(
      `document.querySelector('#new-id').getAttribute('aria-describedby').split(' ')
         .map((id) => document.getElementById(id).innerText).join(' ')`,
    )
    assert.match(String(described), /^Any 64-bit integer, .* id must be a whole number/)
  })

  test('can be used with the keyboard alone, in visual order', async (t) => {
    const page = await openPage(t)
    const { keyboard } = page.page
    const stops: string[] = []
    async function tabTo(id: string): Promise<void> {
      for (let stop = ''; stop !== id; stops.push(stop)) {
        await keyboard.press('Tab')
        stop = await page.evaluate('document.activeElement.id || document.activeElement.innerText')
      }
      // The focused element has a visible outline.
      assert.equal(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle'), 'solid')
    }
    await tabTo('token')
    await keyboard.type(TOKEN)
    await keyboard.press('Enter')
    await page.waitForText('#none', /No plants yet/)
    await tabTo('new-id')
    await keyboard.type('42')
    await tabTo('new-name')
    await keyboard.type('Fern')
    await keyboard.press('Enter')
    await page.waitForText('#plants', /Fern/)
    assert.equal(await page.evaluate('document.activeElement.id'), 'new-name')
    await tabTo('Delete')
    await keyboard.press('Enter')
    await keyboard.press('Enter')
    await keyboard.press('Enter')
    assert.equal(await page.evaluate('document.activeElement.innerText'), 'Keep')
    await tabTo('Delete for good')
    await keyboard.press('Enter')
    // The row disappears with the response to the delete, before the list is loaded again.
    await page.waitForText('#list .result', /^Deleted\. Page 1: 0 plants/)
    assert.equal(await page.evaluate('document.activeElement.innerText'), 'List')
    await tabTo('delete-id')
    assert.deepEqual(
      stops.filter((stop) => stop.length < 20),
      ['token', 'Use token', 'forget', 'new-id', 'new-name', 'new-tag', 'Create', 'Copy']
        .concat(['list-limit', 'list-after', 'List', 'previous', 'next', 'Delete', 'Delete for good'])
        .concat(['previous', 'next', 'Copy', 'delete-id']),
    )
  })

  test('has its live regions from the start, and accessible names for all buttons, texts and fields', async (t) => {
    const { page } = await openPage(t)
    const nodes: SerializedAXNode[] = []
    const walk = (node: SerializedAXNode): void => {
      nodes.push(node)
      node.children?.forEach(walk)
    }
    walk((await page.accessibility.snapshot({ interestingOnly: false }))!)
    const named = (role: string) => nodes.filter((node) => node.role === role).map(({ name }) => name)
    assert.deepEqual([named('alert').length, named('status').length], [6, 6])
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

  test('shows the states disabled, busy, invalid and focused with forced colors', async (t) => {
    const page = await openPage(t, { store: createStoreWithFerns(11) }, `#token=${TOKEN}`)
    const session = await page.page.createCDPSession()
    await session.send('Emulation.setEmulatedMedia', { features: [{ name: 'forced-colors', value: 'active' }] })
    await page.waitForText('#list .result', /^Page 1/)
    const button = (name: string) => `::-p-aria([name="${name}"][role="button"])`
    const id = '#delete ::-p-aria(Id)'

    const first = [await takeScreenshot(page, button('Previous')), await takeScreenshot(page, button('Next'))]
    await page.clickButton('#list', 'Next')
    await page.waitForText('#list .result', /^Page 2/)
    assert.notEqual(await takeScreenshot(page, button('Previous')), first[0], 'Previous')
    assert.notEqual(await takeScreenshot(page, button('Next')), first[1], 'Next')

    const idle = await takeScreenshot(page, button('List'))
    await page.page.focus(button('List'))
    assert.notEqual(await takeScreenshot(page, button('List'), false), idle, 'focus')
    const release = page.blockRequests('GET /plants')
    await page.submit('list')
    assert.notEqual(await takeScreenshot(page, button('List')), idle, 'busy')
    release()

    const right = await takeScreenshot(page, id)
    await page.submit('delete')
    assert.deepEqual(await page.getInvalidFieldIds(), ['delete-id'])
    assert.notEqual(await takeScreenshot(page, id), right, 'invalid')
  })
})
