import { cloneTemplate, cut, find, replaceChildren, selectText, setText, showMarks } from './document.ts'

/** A request that the page has sent. The response is filled in when the request completes. */
export interface LoggedRequest {
  readonly method: string
  readonly url: string
  readonly body: unknown
  status: string
  outcome: 'pending' | 'success' | 'error'
  time: string
  response: string
}

const SHOWN_HEADERS = ['Content-Type', 'Link', 'WWW-Authenticate', 'Allow', 'Retry-After', 'X-Request-Id']
/** The abort reason for requests that are no longer needed. */
export const CANCELED = 'Canceled'
const MAX_LOGGED = 20
/** The maximum number of characters of a body to show. Rendering very long strings is slow. */
const MAX_BODY = 2000

/** The list item of each request. Reusing an item keeps it expanded and focused. */
const items = new WeakMap<LoggedRequest, HTMLElement>()

/**
 * Creates a `fetch` that logs its requests and responses, newest first.
 * @param onChange called after each change to the log
 * @param onFailure called after each request that got no response, or a response with a status of 500 or more
 */
export function createLoggingFetch(log: LoggedRequest[], onChange: () => void, onFailure: () => void) {
  return async (url: string, init: RequestInit): Promise<Response> => {
    const { method = 'GET', body } = init
    const start = performance.now()
    const request: LoggedRequest = {
      ...{ method, url, body },
      ...{ status: '…', outcome: 'pending', time: '', response: 'Waiting for the response …' },
    }
    log.unshift(request)
    log.length = Math.min(log.length, MAX_LOGGED)
    onChange()
    let isFailure = false
    try {
      const response = await fetch(url, { ...init, cache: 'no-store' })
      const text = await response.clone().text()
      const { status, ok, statusText, headers } = response
      const lines = SHOWN_HEADERS.filter((name) => headers.has(name)).map((name) => `${name}: ${headers.get(name)}\n`)
      // HTTP/2 has no status text.
      Object.assign(request, { status: `${status} ${statusText}`.trim(), outcome: ok ? 'success' : 'error' })
      request.response = showMarks(`${lines.join('')}\n${cut(text, MAX_BODY)}`).trim()
      isFailure = status >= 500
      return response
    } catch (error) {
      isFailure = error !== CANCELED
      Object.assign(request, { status: isFailure ? 'No response' : CANCELED, outcome: 'error', response: '' })
      throw error
    } finally {
      request.time = `${Math.round(performance.now() - start)} ms`
      onChange()
      if (isFailure) onFailure()
    }
  }
}

/** @param onCopy called with a message when a request has been copied */
export function drawLog(log: readonly LoggedRequest[], onCopy: (message: string) => void): void {
  const shown = log.map((request) => items.get(request) ?? createItem(request, onCopy))
  replaceChildren(find('#log ol'), shown)
  for (const [index, item] of shown.entries()) {
    const { status, outcome, time, response } = log[index]!
    const statusElement = setText(find('.status', item), status)
    statusElement.dataset['outcome'] = outcome
    statusElement.translate = !/^\d/.test(status)
    setText(find('.time', item), time)
    // Until a response arrives, the element contains the page's own text, which can be translated.
    setText(find('.response', item), response).translate = outcome === 'pending'
  }
}

function createItem(request: LoggedRequest, onCopy: (message: string) => void): HTMLElement {
  const item = cloneTemplate('#request')
  const { pathname, search } = new URL(request.url)
  setText(find('.request', item), `${request.method} ${pathname}${search}`)
  const curl = setText(find('.curl', item), toCurl(request))
  find('button', item).onclick = () => void copy(toCurl(request), curl).then(onCopy)
  items.set(request, item)
  return item
}

async function copy(text: string, element: HTMLElement): Promise<string> {
  const hint = 'Set TOKEN to your token in the shell first.'
  try {
    await navigator.clipboard.writeText(text)
    return `Copied. ${hint}`
  } catch {
    // The clipboard API isn't available on pages loaded over plain HTTP from another machine.
    selectText(element, text)
    return `Selected: copy it with the keyboard. ${hint}`
  }
}

function toCurl({ method, url, body }: LoggedRequest): string {
  const quoteForShell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
  const lines = [`curl -i ${method === 'DELETE' ? '-X DELETE ' : ''}${quoteForShell(url)}`]
  lines.push('-H "Authorization: Bearer $TOKEN"')
  if (typeof body === 'string') {
    lines.push("-H 'Content-Type: application/json'", `-d ${quoteForShell(showMarks(body))}`)
  }
  return lines.join(' \\\n  ')
}
