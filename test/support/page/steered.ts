import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { memoryStore, type PlantStoreOptions } from '../../../src/index.ts'
import { createListener, openAsAda, type PlantPage } from './browser.ts'

type Steer = (response: ServerResponse, pass: () => void) => void

export type Form = 'create' | 'delete' | 'list'

/** What the tests write into each form, by the labels of its fields. */
export const FIELDS: Readonly<Record<Form, Readonly<Record<string, string>>>> = {
  create: { Id: '42', Name: 'Moss' },
  delete: { Id: '2' },
  list: {},
}

/** How the request of each form begins. */
export const REQUESTS: Readonly<Record<Form, string>> = { create: 'POST', delete: 'DELETE', list: 'GET /plants' }

const BUTTONS: Readonly<Record<Form, string>> = { create: 'Create', delete: 'Delete', list: 'List' }

/** The page of ada, who has 21 ferns, at a service whose responses a test may make itself, or hold back. */
export class SteeredPage {
  /** What the page has asked for, but for whether the service is ready: it asks that whenever it is looked at. */
  readonly requests: string[] = []
  readonly #steers = new Map<string, Steer>()
  page!: PlantPage

  static async open(t: TestContext, options: Partial<PlantStoreOptions> = {}): Promise<SteeredPage> {
    const steered = new SteeredPage()
    const store = memoryStore()
    for (let id = 1n; id <= 21n; id++) void store.create('ada', { id, name: `Fern ${id}` })
    const listener = createListener({ store, ...options })
    steered.page = await openAsAda(t, (request: IncomingMessage, response: ServerResponse) => {
      const { method = '', url = '' } = request
      if (url !== '/readyz') steered.requests.push(`${method} ${url}`)
      const pass = (): void => listener(request, response)
      const steer = [...steered.#steers].find(([start]) => `${method} ${url}`.startsWith(start))?.[1]
      if (steer === undefined) pass()
      else steer(response, pass)
    })
    return steered
  }

  /** Steers the responses to all requests that start so, until the function that it gives is called. */
  steer(start: string, steer: Steer): () => void {
    this.#steers.set(start, steer)
    return () => this.#steers.delete(start)
  }

  answer(start: string, status: number, type: string, body: string): () => void {
    return this.steer(start, (response) => response.writeHead(status, { 'Content-Type': type }).end(body))
  }

  /** Holds requests back. */
  hold(start: string): () => void {
    const held: (() => void)[] = []
    const stop = this.steer(start, (_response, pass) => held.push(pass))
    return () => {
      stop()
      for (const pass of held) pass()
    }
  }

  count(method: string): number {
    return this.requests.filter((request) => request.startsWith(method)).length
  }

  /** Writes into a form and sends it. */
  async send(form: Form, fields = FIELDS[form]): Promise<void> {
    for (const [label, text] of Object.entries(fields)) await this.page.fill(`#${form}`, label, text)
    await this.press(form)
  }

  /** The ids of the fields that are wrong. */
  wrong(): Promise<string[]> {
    return this.page.evaluate(`Array.from(document.querySelectorAll('[aria-invalid=true]'), ({ id }) => id)`)
  }

  /** Presses the button of a form, whatever stands in it. */
  press(form: Form): Promise<void> {
    return this.page.press(`#${form}`, BUTTONS[form])
  }

  value(id: string): Promise<string> {
    return this.page.evaluate(`document.querySelector('#${id}').value`)
  }
}
