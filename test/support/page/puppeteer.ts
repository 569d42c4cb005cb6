/**
 * The part of Puppeteer that the tests use. Its own types are only available after `npm run tools`, but lint and the
 * type check have to work without it.
 */

export interface Browser {
  createBrowserContext(): Promise<BrowserContext>
  close(): Promise<void>
}

/** A browser profile. */
interface BrowserContext {
  newPage(): Promise<Page>
  setPermission(origin: string, permission: { permission: { name: string }; state: 'granted' }): Promise<void>
  /** Waits until a matching tab or worker exists. */
  waitForTarget(matches: (target: { url(): string }) => boolean): Promise<unknown>
  close(): Promise<void>
}

/** A browser tab. Expressions are JavaScript source texts. */
export interface Page {
  readonly accessibility: { snapshot(options: { interestingOnly: boolean }): Promise<AccessibilityNode> }
  readonly keyboard: {
    press(key: string): Promise<void>
    type(text: string): Promise<void>
    /** Inserts the text without pressing keys, like pasting. */
    sendCharacter(text: string): Promise<void>
  }
  readonly mouse: { move(x: number, y: number): Promise<void> }
  on(event: 'pageerror', listener: (error: unknown) => void): void
  on(event: 'console', listener: (message: { text(): string }) => void): void
  on(event: 'dialog', listener: (dialog: Dialog) => void): void
  browserContext(): BrowserContext
  createCDPSession(): Promise<{ send(method: string, parameters: object): Promise<unknown> }>
  setDefaultTimeout(ms: number): void
  setViewport(viewport: { width: number; height: number; deviceScaleFactor?: number }): Promise<void>
  emulateMediaFeatures(features: readonly { name: string; value: string }[]): Promise<void>
  goto(url: string): Promise<unknown>
  goBack(): Promise<unknown>
  reload(): Promise<unknown>
  title(): Promise<string>
  url(): string
  addScriptTag(script: { content: string }): Promise<unknown>
  evaluate(expression: string): Promise<unknown>
  waitForFunction(expression: string, options?: { timeout: number }): Promise<{ jsonValue(): Promise<unknown> }>
  waitForNetworkIdle(options: { idleTime: number }): Promise<void>
  waitForResponse(matches: (response: PageResponse) => boolean): Promise<PageResponse>
  waitForSelector(selector: string): Promise<PageElement | null>
  /** Waits for an element before it clicks. */
  locator(selector: string): { click(): Promise<void>; fill(value: string): Promise<void> }
  click(selector: string, options?: { count: number }): Promise<void>
  focus(selector: string): Promise<void>
  select(selector: string, value: string): Promise<unknown>
  screenshot(options: { path: string }): Promise<unknown>
  screenshot(options: { clip: Box; encoding: 'base64' }): Promise<string>
}

interface Dialog {
  message(): string
  accept(): Promise<void>
  dismiss(): Promise<void>
}

interface PageElement {
  evaluate(run: (element: { click(): void }) => void): Promise<void>
  focus(): Promise<void>
  scrollIntoView(): Promise<void>
  boundingBox(): Promise<Box | null>
}

interface PageResponse {
  url(): string
}

interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** An element as assistive technologies see it. */
export interface AccessibilityNode {
  readonly role: string
  readonly name?: string
  readonly required?: boolean
  readonly children?: readonly AccessibilityNode[]
}
