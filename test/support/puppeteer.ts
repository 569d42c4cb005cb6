/**
 * The part of Puppeteer that the tests use. Its own types are only available after `npm run tools`, but lint and the
 * type check have to work without it.
 */

export interface Browser {
  createBrowserContext(): Promise<BrowserContext>
  close(): Promise<void>
}

/** A browser profile. */
export interface BrowserContext {
  newPage(): Promise<Page>
  close(): Promise<void>
}

/** A browser tab. Expressions are JavaScript source texts. */
export interface Page {
  readonly keyboard: {
    press(key: string): Promise<void>
    type(text: string): Promise<void>
    /** Inserts the text without pressing keys, like pasting. */
    sendCharacter(text: string): Promise<void>
  }
  on(event: 'pageerror', listener: (error: unknown) => void): void
  on(event: 'console', listener: (message: { text(): string }) => void): void
  on(event: 'dialog', listener: (dialog: Dialog) => void): void
  evaluateOnNewDocument(source: string): Promise<unknown>
  setDefaultTimeout(ms: number): void
  setViewport(viewport: { width: number; height: number }): Promise<void>
  emulateMediaFeatures(features: readonly { name: string; value: string }[]): Promise<void>
  goto(url: string): Promise<unknown>
  reload(): Promise<unknown>
  url(): string
  evaluate(expression: string): Promise<unknown>
  waitForFunction(expression: string, options?: { timeout: number }): Promise<unknown>
  waitForNetworkIdle(options: { idleTime: number }): Promise<void>
  waitForSelector(selector: string): Promise<unknown>
  /** Waits for an element before it clicks. */
  locator(selector: string): { click(): Promise<void> }
  click(selector: string, options?: { count: number }): Promise<void>
  focus(selector: string): Promise<void>
  screenshot(options: { path: string }): Promise<unknown>
}

interface Dialog {
  message(): string
  accept(): Promise<void>
  dismiss(): Promise<void>
}
