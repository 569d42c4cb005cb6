import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, type TestContext } from 'node:test'
import { createPlantStore, type PlantStoreOptions } from '../../src/index.ts'
import { importTool, skipWithoutTools } from './extra-packages.ts'
import type { Browser, Page } from './puppeteer.ts'
import { createWebUiListener } from './web-ui-server.ts'

export const TOKEN = 'YWRh'

const { TEST_CHROMIUM, TEST_REQUIRE_ALL } = process.env
const COMMANDS = ['chromium', 'chromium-browser', 'google-chrome'].map((name) => `command -v ${name}`).join(' || ')
const chromium = TEST_CHROMIUM ?? spawnSync('sh', ['-c', COMMANDS], { encoding: 'utf8' }).stdout.trim()

/** The skip reason for tests that need a browser, or false to run them. */
export const skipWithoutBrowser: string | false =
  skipWithoutTools ||
  (TEST_REQUIRE_ALL !== '1' && chromium === '' && 'install Chromium, or set TEST_CHROMIUM to its path')

/** The tests of a file share one browser; each test has its own profile. */
let browser: Promise<Browser> | undefined
after(async () => (await browser)?.close())

type Interceptor = (response: ServerResponse, next: () => void) => void

/** The web UI in a browser tab, as a user sees it. Tests can replace or delay the responses of its service. */
export class WebUiPage {
  readonly page: Page
  /** The URL of the service, which ends with a slash. */
  url = ''
  /** Errors that the browser reports, such as exceptions and blocked resources. */
  readonly browserErrors: string[] = []
  /** The request line and the Authorization header of each request for plants. */
  readonly requests: string[] = []
  readonly #interceptors = new Map<string, Interceptor>()

  constructor(page: Page) {
    this.page = page
    page.on('pageerror', (error) => this.browserErrors.push(String(error)))
    page.on('console', (message) => {
      // Browsers log these messages for every status of 400 or more.
      if (!message.text().startsWith('Failed to load resource')) this.browserErrors.push(message.text())
    })
  }

  /** Wraps a listener so that tests can intercept its requests for plants. */
  wrapListener(listener: RequestListener): RequestListener {
    return (request, response) => {
      const requestLine = `${request.method} ${request.url}`
      const { authorization } = request.headers
      if (authorization !== undefined) this.requests.push(`${requestLine} ${authorization}`)
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

  respondWith(prefix: string, status: number, body: string): () => void {
    const headers = { 'Content-Type': 'application/json' }
    return this.intercept(prefix, (response) => response.writeHead(status, headers).end(body))
  }

  /** Rejects the token of each request from now on, as if it had been revoked. */
  revokeToken(): () => void {
    return this.respondWith('', 401, '{"error":40101,"message":"The bearer token is invalid."}')
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

  countRequests(prefix: string): number {
    return this.requests.filter((request) => request.startsWith(prefix)).length
  }

  /** Evaluates an expression in the page and returns its value. */
  async evaluate<T>(expression: string): Promise<T> {
    return (await this.page.evaluate(expression)) as T
  }

  getText(selector: string): Promise<string> {
    return this.evaluate(`document.querySelector('${selector}').innerText`)
  }

  getValue(id: string): Promise<string> {
    return this.evaluate(`document.querySelector('#${id}').value`)
  }

  getFocused(): Promise<string> {
    return this.evaluate(
      `document.activeElement.id || document.activeElement.ariaLabel || document.activeElement.innerText`,
    )
  }

  isVisible(selector: string): Promise<boolean> {
    return this.evaluate(`document.querySelector('${selector}').checkVisibility()`)
  }

  /** Returns one part of each listed plant. */
  getListed(part: 'id' | 'name' | 'tag'): Promise<string[]> {
    return this.evaluate(`Array.from(document.querySelectorAll('#list .${part}'), (element) => element.textContent)`)
  }

  /** Waits until the text of an element matches. */
  async waitForText(selector: string, pattern: RegExp, timeout = 60_000): Promise<void> {
    const text = `document.querySelector('${selector}').innerText`
    await this.page.waitForFunction(`${pattern}.test(${text})`, { timeout }).catch(async (error: unknown) => {
      assert.match(await this.evaluate<string>(text), pattern)
      throw error
    })
  }

  /** Replaces the text of a field, like pasting. */
  async fill(id: string, text: string): Promise<void> {
    await this.page.focus(`#${id}`)
    await this.evaluate(`document.activeElement.select()`)
    await this.page.keyboard.sendCharacter(text)
  }

  click(selector: string): Promise<void> {
    return this.page.locator(selector).click()
  }

  async useToken(token: string): Promise<void> {
    await this.fill('token', token)
    await this.page.keyboard.press('Enter')
  }

  /** Fills in the fields for a new plant, except those that are undefined, and presses Enter. */
  async submitPlant(id: string | undefined, name: string, tag?: string): Promise<void> {
    if (id !== undefined) await this.fill('new-id', id)
    if (tag !== undefined) await this.fill('new-tag', tag)
    await this.fill('new-name', name)
    await this.page.keyboard.press('Enter')
  }

  /** Adds a plant, and waits until it's listed. */
  async addPlant(id: string, name: string): Promise<void> {
    await this.submitPlant(id, name)
    await this.waitForText('#message', /^Added/)
    await this.page.waitForFunction(
      `[...document.querySelectorAll('#list .id')].some(({ innerText }) => innerText === '${id}')`,
    )
  }

  async goToId(id: string): Promise<void> {
    await this.fill('go-to-id', id)
    await this.page.keyboard.press('Enter')
  }

  /** Clicks Delete or Cancel in the row of a plant, counted from 1. */
  clickInRow(row: number): Promise<void> {
    return this.click(`#list > :nth-child(${row}) summary.button`)
  }

  async deletePlant(row: number): Promise<void> {
    await this.clickInRow(row)
    await this.click(`#list > :nth-child(${row}) p button`)
  }

  /** Reloads the page after a script that runs before those of the page. */
  async runBeforePage(source: string): Promise<void> {
    await this.page.evaluateOnNewDocument(source)
    await this.page.reload()
  }

  /** Lets the browser tab get the focus. */
  async focusWindow(): Promise<void> {
    await this.evaluate(`dispatchEvent(new Event('focus')) && undefined`)
  }

  /** Opens an entry of the request log, counted from 1, and returns its summary, curl command and response. */
  openLogEntry(index: number): Promise<string[]> {
    return this.evaluate(`(() => {
      document.querySelector('#log').open = true
      const entry = document.querySelector('#requests > :nth-child(${index})')
      entry.open = true
      return ['summary', '.curl', '.response'].map((part) => entry.querySelector(part).innerText)
    })()`)
  }
}

/** Opens the web UI of a service in a new tab. The test fails if the browser reports errors. */
export async function openPage(
  t: TestContext,
  options: Partial<PlantStoreOptions> = {},
  hash = '',
  browserArguments: readonly string[] = [],
): Promise<WebUiPage> {
  const own = browserArguments.length > 0 ? launchBrowser(browserArguments) : (browser ??= launchBrowser([]))
  const context = await (await own).createBrowserContext()
  const webUi = new WebUiPage(await context.newPage())
  const plants = createPlantStore({ tokens: { [TOKEN]: 'ada', Ym9i: 'bob' }, ...options } as PlantStoreOptions)
  const server = createServer(webUi.wrapListener(createWebUiListener(plants)))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(async () => {
    await context.close()
    if (own !== browser) await (await own).close()
    server.closeAllConnections()
    server.close()
    assert.deepEqual(webUi.browserErrors, [])
  })
  webUi.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  // On a busy machine, the default of 30 seconds can be too short.
  webUi.page.setDefaultTimeout(120_000)
  await webUi.page.setViewport({ width: 1280, height: 900 })
  await webUi.page.goto(webUi.url + hash)
  return webUi
}

/** Opens the web UI with ada's token, and waits until her plants are shown. */
export async function openAsAda(t: TestContext, options?: Partial<PlantStoreOptions>): Promise<WebUiPage> {
  const webUi = await openPage(t, options, `#token=${TOKEN}`)
  await webUi.waitForText('#service', /^Ready$/)
  return webUi
}

async function launchBrowser(browserArguments: readonly string[]): Promise<Browser> {
  const { launch } = await importTool<{ launch: (options: object) => Promise<Browser> }>('puppeteer-core')
  // Chromium's sandbox doesn't work for root, as in most containers. The page is trusted.
  return launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-dev-shm-usage', ...browserArguments] })
}
