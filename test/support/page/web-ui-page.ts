import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import type { RequestListener, ServerResponse } from 'node:http'
import { after, type TestContext } from 'node:test'
import { launch, type Browser, type Page } from 'puppeteer-core'
import { memoryStore, type PlantStoreOptions, type Store } from '../../../src/index.ts'
import { createWebUiAssets } from '../../../src/standalone/paths/page/assets.ts'
import { TOKEN } from '../program/program.ts'
import { createTestListener as createProgramListener } from '../program/test-listener.ts'
import { skipUnlessNode24 } from '../skip-reasons.ts'
import { getPort, serve } from '../wire/service.ts'

const { TEST_CHROMIUM, TEST_REQUIRE_ALL } = process.env
const lookupCommands = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'].map(
  (name) => `command -v ${name}`,
)
const chromium =
  TEST_CHROMIUM ?? spawnSync('sh', ['-c', lookupCommands.join(' || ')], { encoding: 'utf8' }).stdout.trim()
if (chromium === '' && TEST_REQUIRE_ALL === '1') throw new Error('TEST_REQUIRE_ALL is set, and there is no Chromium')

/** Why a test is skipped that takes a browser. */
export const skipWithoutChromium: string | false =
  skipUnlessNode24 || (chromium === '' && 'install Chromium, or set TEST_CHROMIUM to its path')

/** One browser for the tests of a file; each test has a profile of its own. */
let browser: Promise<Browser> | undefined
after(async () => (await browser)?.close())

/** The address of a service, its listener, or its options. */
type Service = string | RequestListener | Partial<PlantStoreOptions>

export type Form = 'create' | 'delete' | 'list'

/** What the tests write into each form, by the labels of its fields. */
export const FORM_INPUT: Readonly<Record<Form, Readonly<Record<string, string>>>> = {
  create: { Id: '42', Name: 'Moss' },
  delete: { Id: '2' },
  list: {},
}

/** How the request of each form begins. */
export const REQUEST_PREFIXES: Readonly<Record<Form, string>> = {
  create: 'POST',
  delete: 'DELETE',
  list: 'GET /plants',
}

const BUTTON_NAMES: Readonly<Record<Form, string>> = { create: 'Create', delete: 'Delete', list: 'List' }

type Interceptor = (response: ServerResponse, next: () => void) => void

/** The page for people, as a person meets it, at a service whose responses a test may make itself, or hold back. */
export class WebUiPage {
  /** Where the service is. */
  url = ''
  readonly page: Page
  /** What the browser has to say of the page: its errors, and what it refused to load. */
  readonly browserErrors: string[] = []
  readonly consoleMessages: string[] = []
  /** What the page has asked for, but for whether the service is ready: it asks that whenever it is looked at. */
  readonly requests: string[] = []
  readonly #interceptors = new Map<string, Interceptor>()

  constructor(page: Page) {
    this.page = page
    page.on('pageerror', (error) => this.browserErrors.push(String(error)))
    page.on('console', (message) => {
      this.consoleMessages.push(message.text())
      // The browser says that of each status of 400 or more, and of what another origin does not let a page have.
      if (!/^(Failed to load resource|Access to fetch at)/.test(message.text())) this.browserErrors.push(message.text())
    })
  }

  /** A listener that may be steered. */
  wrapListener(listener: RequestListener): RequestListener {
    return (request, response) => {
      const requestLine = `${request.method} ${request.url}`
      if (request.url !== '/readyz') this.requests.push(requestLine)
      const next = (): void => listener(request, response)
      const interceptor = [...this.#interceptors].find(([prefix]) => requestLine.startsWith(prefix))?.[1]
      if (interceptor === undefined) next()
      else interceptor(response, next)
    }
  }

  /** Steers the responses to all requests that start so, until the function that it gives is called. */
  intercept(prefix: string, interceptor: Interceptor): () => void {
    this.#interceptors.set(prefix, interceptor)
    return () => this.#interceptors.delete(prefix)
  }

  respondWith(prefix: string, status: number, type: string, body: string): () => void {
    return this.intercept(prefix, (response) => response.writeHead(status, { 'Content-Type': type }).end(body))
  }

  /** Holds requests back. */
  blockRequests(prefix: string): () => void {
    const blocked: (() => void)[] = []
    const stopIntercepting = this.intercept(prefix, (_response, next) => blocked.push(next))
    return () => {
      stopIntercepting()
      for (const next of blocked) next()
    }
  }

  countRequests(method: string): number {
    return this.requests.filter((request) => request.startsWith(method)).length
  }

  /** The value of an expression in the page. */
  async evaluate<T>(expression: string): Promise<T> {
    return (await this.page.evaluate(expression)) as T
  }

  getText(selector: string): Promise<string> {
    return this.evaluate(`document.querySelector(${JSON.stringify(selector)}).innerText`)
  }

  /** What the items of the list say, name and tag, or the parts that are named. */
  getListedPlants(...parts: string[]): Promise<string[][]> {
    const selector = (parts.length === 0 ? ['name', 'tag'] : parts).map((part) => `.${part}`).join()
    return this.evaluate(
      `Array.from(document.querySelectorAll('#plants li'), (item) =>
         Array.from(item.querySelectorAll('${selector}'), (part) => part.textContent))`,
    )
  }

  /** What the service has of ada's plants. */
  async fetchPlants(query = ''): Promise<unknown> {
    return (await fetch(`${this.url}/plants${query}`, { headers: { Authorization: `Bearer ${TOKEN}` } })).json()
  }

  /** Settles once the text of an element matches. */
  async waitForText(selector: string, pattern: RegExp): Promise<void> {
    const text = `document.querySelector(${JSON.stringify(selector)}).textContent`
    await this.page.waitForFunction(`${pattern}.test(${text})`).catch(async (error: unknown) => {
      assert.match(await this.evaluate<string>(text), pattern)
      throw error
    })
  }

  /** Puts text into the field of a form that has this label, as pasting does. */
  async fillField(form: string, label: string, text: string): Promise<void> {
    const field = await this.page.waitForSelector(`${form} ::-p-aria(${label})`)
    await field!.focus()
    await this.evaluate(`document.activeElement.select()`)
    await this.page.keyboard.sendCharacter(text)
  }

  async clickButton(form: string, button: string): Promise<void> {
    await this.page.locator(`${form} ::-p-aria([name="${button}"][role="button"])`).click()
  }

  /** Presses the button of a form, whatever stands in it. */
  submit(form: Form): Promise<void> {
    return this.clickButton(`#${form}`, BUTTON_NAMES[form])
  }

  /** Writes into a form and sends it. */
  async fillAndSubmit(form: Form, fields = FORM_INPUT[form]): Promise<void> {
    for (const [label, text] of Object.entries(fields)) await this.fillField(`#${form}`, label, text)
    await this.submit(form)
  }

  getValue(id: string): Promise<string> {
    return this.evaluate(`document.querySelector('#${id}').value`)
  }

  /** The ids of the fields that are wrong. */
  getInvalidFieldIds(): Promise<string[]> {
    return this.evaluate(`Array.from(document.querySelectorAll('[aria-invalid=true]'), ({ id }) => id)`)
  }

  /** Creates a plant, and settles once the page has the response and the list of what is there now. */
  async createPlant(id: string, name: string, tag = ''): Promise<void> {
    await this.fillAndSubmit('create', { Id: id, Name: name, ...(tag !== '' && { 'Tag (optional)': tag }) })
    await this.waitForText('#create .result', /./)
    await this.waitForText('#list .result', /./)
  }
}

/**
 * Opens the page of a service, or of the one that the program serves with these options, in a tab of its own. The test
 * fails if the browser complains of the page.
 */
export async function openPage(t: TestContext, service: Service = {}, hash = ''): Promise<WebUiPage> {
  // The sandbox refuses to run as root, as in most containers; the only page is ours.
  browser ??= launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
  const context = await (await browser).createBrowserContext()
  const plantPage = new WebUiPage(await context.newPage())
  // A busy machine can need more than the default of 30 seconds.
  plantPage.page.setDefaultTimeout(120_000)
  t.after(async () => {
    await context.close()
    assert.deepEqual(plantPage.browserErrors, [])
  })
  const listener = typeof service === 'object' ? createWebUiListener(service) : service
  plantPage.url = typeof listener === 'string' ? listener : await serveListener(t, plantPage.wrapListener(listener))
  await plantPage.page.setViewport({ width: 1280, height: 900 })
  await plantPage.page.goto(`${plantPage.url}/${hash}`)
  return plantPage
}

/** Opens the page with the token of ada, and settles once her plants are in view. */
export async function openAsAda(t: TestContext, of?: Service): Promise<WebUiPage> {
  const page = await openPage(t, of, `#token=${TOKEN}`)
  await page.waitForText('#list .result', /./)
  await page.waitForText('#access', /may/)
  return page
}

/** What the program serves, the page with it, in the test's own process. */
export function createWebUiListener(options: Partial<PlantStoreOptions> = {}): RequestListener {
  return createProgramListener(
    { tokens: { [TOKEN]: 'ada' }, ...options } as PlantStoreOptions,
    createWebUiAssets('memory'),
  )
}

/** An empty page. With it {@link openPage} opens one of another origin. */
export function serveBlankPage(_request: unknown, response: ServerResponse): void {
  response.setHeader('Content-Type', 'text/html').end()
}

/** Starts a listener on a free port, and gives its address. */
export async function serveListener(t: TestContext, listener = createWebUiListener()): Promise<string> {
  return `http://127.0.0.1:${getPort(await serve(t, listener))}`
}

/** A store in which ada has so many ferns. */
export function createStoreWithFerns(count: number): Store {
  const store = memoryStore()
  for (let id = 1; id <= count; id++) void store.create('ada', { id: BigInt(id), name: `Fern ${id}` })
  return store
}
