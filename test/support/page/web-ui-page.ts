import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import type { RequestListener, ServerResponse } from 'node:http'
import { after, type TestContext } from 'node:test'
import { memoryStore, type PlantStoreOptions, type Store } from '../../../src/index.ts'
import { createWebUiAssets } from '../../../src/standalone/paths/page/assets.ts'
import { importTool, skipWithoutTools } from '../package/extra-packages.ts'
import { TOKEN } from '../program/program.ts'
import { createTestListener as createProgramListener } from '../program/test-listener.ts'
import { getPort, serve } from '../wire/service.ts'
import type { Browser, Page } from './puppeteer.ts'

const { TEST_CHROMIUM, TEST_REQUIRE_ALL } = process.env
const lookupCommands = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'].map(
  (name) => `command -v ${name}`,
)
const chromium =
  TEST_CHROMIUM ?? spawnSync('sh', ['-c', lookupCommands.join(' || ')], { encoding: 'utf8' }).stdout.trim()
if (chromium === '' && TEST_REQUIRE_ALL === '1')
  throw new Error('TEST_REQUIRE_ALL is set, but Chromium is not installed')

/** The skip reason for tests that need a browser, or false to run them. */
export const skipWithoutChromium: string | false =
  skipWithoutTools || (chromium === '' && 'install Chromium, or set TEST_CHROMIUM to its path')

/** The tests of a file share one browser; each test has its own profile. */
let browser: Promise<Browser> | undefined
after(async () => (await browser)?.close())

/** The URL of a service, its listener, or its options. */
type Service = string | RequestListener | Partial<PlantStoreOptions>

/** Selects one part of each listed plant. */
type PlantPart = 'id' | 'name' | 'tag'

type Interceptor = (response: ServerResponse, next: () => void) => void

/** The web UI in a browser tab, as a user sees it. Tests can replace or delay the responses of its service. */
export class WebUiPage {
  /** The URL of the service. */
  url = ''
  readonly page: Page
  /** Errors that the browser reports, such as exceptions and blocked resources. */
  readonly browserErrors: string[] = []
  readonly consoleMessages: string[] = []
  /**
   * The request lines of all requests that the page has sent, except those for `/readyz`, which the page requests
   * whenever it becomes visible.
   */
  readonly requests: string[] = []
  readonly #interceptors = new Map<string, Interceptor>()

  constructor(page: Page) {
    this.page = page
    page.on('pageerror', (error) => this.browserErrors.push(String(error)))
    page.on('console', (message) => {
      this.consoleMessages.push(message.text())
      // Browsers log these messages for every status of 400 or more, and for responses that CORS blocks.
      if (!/^(Failed to load resource|Access to fetch at)/.test(message.text())) this.browserErrors.push(message.text())
    })
  }

  /** Wraps a listener so that tests can intercept its requests. */
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

  /** Intercepts all requests whose request line starts with a prefix. Returns a function that ends the interception. */
  intercept(prefix: string, interceptor: Interceptor): () => void {
    this.#interceptors.set(prefix, interceptor)
    return () => this.#interceptors.delete(prefix)
  }

  respondWith(prefix: string, status: number, type: string, body: string): () => void {
    return this.intercept(prefix, (response) => response.writeHead(status, { 'Content-Type': type }).end(body))
  }

  /** Holds requests until the returned function is called. */
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

  /** Evaluates an expression in the page and returns its value. */
  async evaluate<T>(expression: string): Promise<T> {
    return (await this.page.evaluate(expression)) as T
  }

  getText(selector: string): Promise<string> {
    return this.evaluate(`document.querySelector(${JSON.stringify(selector)}).innerText`)
  }

  /** Returns the name and tag, or the given parts, of each listed plant, without empty ones. */
  getListedPlants(...parts: PlantPart[]): Promise<string[][]> {
    const selector = (parts.length === 0 ? ['name', 'tag'] : parts).map((part) => `.${part}`).join()
    return this.evaluate(
      `Array.from(document.querySelectorAll('tbody tr'), (row) =>
         Array.from(row.querySelectorAll('${selector}'), (part) => part.textContent).filter(Boolean))`,
    )
  }

  /** Fetches ada's plants from the service. */
  async fetchPlants(query = ''): Promise<unknown> {
    return (await fetch(`${this.url}/plants${query}`, { headers: { Authorization: `Bearer ${TOKEN}` } })).json()
  }

  /** Waits until the text of an element matches. */
  async waitForText(selector: string, pattern: RegExp, timeout = 10_000): Promise<void> {
    const text = `document.querySelector(${JSON.stringify(selector)}).textContent`
    await this.page.waitForFunction(`${pattern}.test(${text})`, { timeout }).catch(async (error: unknown) => {
      assert.match(await this.evaluate<string>(text), pattern)
      throw error
    })
  }

  /** Replaces the text of the field with this label, like pasting. */
  async fillField(form: string, label: string, text: string): Promise<void> {
    const field = await this.page.waitForSelector(`${form} ::-p-aria(${label})`)
    await field!.focus()
    await this.evaluate(`document.activeElement.select()`)
    await this.page.keyboard.sendCharacter(text)
  }

  async clickButton(form: string, button: string): Promise<void> {
    await this.page.locator(`${form} ::-p-aria([name="${button}"][role="button"])`).click()
  }

  /** Fills in the fields for a new plant and clicks Add. */
  async submitPlant(id: string, name: string, tag = ''): Promise<void> {
    await this.fillField('#create', 'Id', id)
    await this.fillField('#create', 'Name', name)
    if (tag !== '') await this.fillField('#create', 'Tag (optional)', tag)
    await this.clickButton('#create', 'Add')
  }

  /** Creates a plant, and waits until the page shows the response and the updated list. */
  async createPlant(id: string, name: string, tag = ''): Promise<void> {
    await this.submitPlant(id, name, tag)
    await this.waitForText('#message', /^Added/)
    await this.waitForList()
  }

  /** Clicks a button in the row of the plant with this id. */
  async clickInRow(id: string, button: 'Delete' | 'Cancel' | 'Confirm'): Promise<void> {
    const position = `Array.from(document.querySelectorAll('.action > button')).findIndex(({ ariaLabel }) =>
      ariaLabel.startsWith('Delete plant ${id},')) + 1`
    const row = (await (await this.page.waitForFunction(position)).jsonValue()) as number
    const buttons = { Delete: '.action > button', Cancel: '.question button', Confirm: '.confirm' }
    await this.page.locator(`tbody tr:nth-child(${row}) ${buttons[button]}`).click()
  }

  /** Deletes a listed plant, and waits until the page shows the response and the updated list. */
  async deletePlant(id: string): Promise<void> {
    await this.clickInRow(id, 'Delete')
    await this.clickInRow(id, 'Confirm')
    await this.waitForText('#message', /^Deleted/)
    await this.waitForList()
  }

  async goToId(id: string): Promise<void> {
    await this.fillField('#go-to', 'Go to id', id)
    await this.clickButton('#go-to', 'Go')
  }

  /** Waits until no list is being loaded. */
  async waitForList(): Promise<void> {
    await this.page.waitForFunction(`document.querySelector('table').ariaBusy === 'false'`)
  }

  /**
   * Opens an entry of the request log, and returns its summary, curl command and response. Index 1 is the newest entry.
   */
  async openLogEntry(index = 1): Promise<{ summary: string; curl: string; response: string }> {
    return this.evaluate(`(() => {
      document.querySelector('#log details').open = true
      const entry = document.querySelector('#log li:nth-child(${index}) details')
      entry.open = true
      const [summary, curl, response] = ['summary', '.curl', '.response'].map((part) => entry.querySelector(part).innerText)
      return { summary: summary.replace(/\\s+/g, ' '), curl, response }
    })()`)
  }

  getFocused(): Promise<string> {
    return this.evaluate('document.activeElement.id || document.activeElement.innerText')
  }

  getValue(id: string): Promise<string> {
    return this.evaluate(`document.querySelector('#${id}').value`)
  }

  /** Returns the ids of the fields that are marked as invalid. */
  getInvalidFieldIds(): Promise<string[]> {
    return this.evaluate(`Array.from(document.querySelectorAll('[aria-invalid=true]'), ({ id }) => id)`)
  }
}

/**
 * Opens the web UI of a service, or of a standalone server with these options, in a new tab. The test fails if the
 * browser reports errors.
 */
export async function openPage(t: TestContext, service: Service = {}, hash = ''): Promise<WebUiPage> {
  browser ??= launchBrowser()
  const context = await (await browser).createBrowserContext()
  const plantPage = new WebUiPage(await context.newPage())
  // On a busy machine, the default of 30 seconds may be too short.
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

async function launchBrowser(): Promise<Browser> {
  const { launch } = await importTool<{ launch: (options: object) => Promise<Browser> }>('puppeteer-core')
  // Chromium's sandbox doesn't work for root, as in most containers. The sandbox isn't needed, because the page is
  // trusted.
  return launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
}

/** Opens the web UI with ada's token, and waits until her plants are shown. */
export async function openAsAda(t: TestContext, of?: Service): Promise<WebUiPage> {
  const page = await openPage(t, of, `#token=${TOKEN}`)
  await page.page.waitForSelector('#plants:not([hidden])')
  return page
}

/** Returns the listener of a standalone server with the web UI, which runs in the test process. */
export function createWebUiListener(options: Partial<PlantStoreOptions> = {}): RequestListener {
  return createProgramListener(
    { tokens: { [TOKEN]: 'ada' }, ...options } as PlantStoreOptions,
    createWebUiAssets('memory'),
  )
}

/** Serves an empty page, so that {@link openPage} can open a page of another origin. */
export function serveBlankPage(_request: unknown, response: ServerResponse): void {
  response.setHeader('Content-Type', 'text/html').end()
}

/** Starts a listener on a free port and returns its URL. */
export async function serveListener(t: TestContext, listener = createWebUiListener()): Promise<string> {
  return `http://127.0.0.1:${getPort(await serve(t, listener))}`
}

/** Returns a store in which ada has the given number of ferns. */
export function createStoreWithFerns(count: number): Store {
  const store = memoryStore()
  for (let id = 1; id <= count; id++) void store.create('ada', { id: BigInt(id), name: `Fern ${id}` })
  return store
}
