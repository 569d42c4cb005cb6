import type { components } from './schema.d.ts'

type Plant = components['schemas']['Plant']
type NewPlant = components['schemas']['NewPlant']
type ServiceError = components['schemas']['Error']

interface Request {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly url: string
  readonly body?: string
}

interface Reply {
  readonly url: string
  readonly status: number
  /** Such as `200 OK`; HTTP/2 has no words for it. */
  readonly statusLine: string
  readonly headers: Headers
  readonly body: string
  readonly ms: number
}

/** Kept here and nowhere else. It leaves the address before anything else happens, or a bookmark would keep it too. */
let token = takeToken()

/** The addresses of the pages of the list that led to the one in view, and its own. */
let pages: readonly string[] = []
let nextPage: string | undefined
let isAccessKnown = false
let isWatching = false

const QUESTION =
  'This address brings a token, but one is in use already. Take the new one? Cancel if you did not enter the address.'

const SHOWN_HEADERS = ['Content-Type', 'Link', 'WWW-Authenticate', 'Allow', 'Retry-After', 'X-Request-Id']

/** The field that an error speaks of. The wrong members of a plant (40002) are named in the message instead. */
const FIELDS_OF_ERRORS: Readonly<Record<number, string>> = {
  40003: 'delete-id',
  40004: 'list-after',
  40100: 'token',
  40101: 'token',
  40300: 'token',
  40400: 'delete-id',
  40401: 'delete-id',
  40900: 'new-id',
}

/** How many characters are shown of a name and of a body: more would make the page slow. */
const MAX_NAME = 100
const MAX_BODY = 2000
const TIMEOUT_MS = 30_000
const RETRY_MS = 2000

/** A form, the request that it makes, and the panel beside it that shows request and response. */
class Action {
  readonly form: HTMLFormElement
  readonly #toRequest: () => Request
  readonly #onSuccess: (reply: Reply) => string
  readonly #panel: Element
  /** Counts the requests, so that a late response does not take the place of that of a later one. */
  #turn = 0
  #isBusy = false

  /** @param onSuccess shows what a response brought, and says it in words */
  constructor(id: string, toRequest: () => Request, onSuccess: (reply: Reply) => string) {
    this.form = byId(id) as HTMLFormElement
    this.#toRequest = toRequest
    this.#onSuccess = onSuccess
    this.form.after((byId('exchange') as HTMLTemplateElement).content.cloneNode(true))
    this.#panel = this.form.nextElementSibling!
    part(this.#panel, 'button').onclick = () => void this.#copy()
    this.form.addEventListener('input', ({ target }) => {
      showError(target as HTMLElement, '')
      this.#draft()
    })
    this.form.addEventListener('submit', (event) => {
      event.preventDefault()
      if (!this.#isBusy) void this.send(toRequest())
    })
    this.#draft()
  }

  async send(request: Request): Promise<void> {
    const turn = ++this.#turn
    const curl = toCurl(request)
    for (const field of this.form.querySelectorAll('input')) showError(field, '')
    this.#isBusy = true
    this.#show(curl, 'Response', 'Waiting for it …')
    const reply = await fetchReply(request).catch(() => undefined)
    if (turn !== this.#turn) return
    this.#isBusy = false
    if (reply === undefined) {
      this.#show(curl, 'No response', '', 'error')
      const doubt = request.method === 'GET' ? '' : ' Nobody knows whether this was done: see the list when it is back.'
      this.#say(`The service cannot be reached.${doubt}`)
      void watchService()
    } else {
      const isSuccess = reply.status < 300
      this.#show(curl, `${reply.statusLine} · ${reply.ms} ms`, formatReply(reply), isSuccess ? 'success' : 'error')
      this.#say(this.#describe(reply, isSuccess))
    }
  }

  #describe(reply: Reply, isSuccess: boolean): string {
    try {
      return isSuccess ? this.#onSuccess(reply) : showServiceError(reply)
    } catch {
      // A proxy has pages of its own, for errors and for those who must log in first.
      return `${reply.statusLine}: this response is not from plant-store.`
    }
  }

  /** Lets a response that is still to come go unseen. */
  cancel(): void {
    this.#turn++
    this.#isBusy = false
    this.#draft()
  }

  #draft(): void {
    this.#show(toCurl(this.#toRequest()), 'Response', 'Not sent yet.')
    this.#say('')
  }

  #show(request: string, status: string, response: string, outcome = ''): void {
    part(this.#panel, '.request').textContent = request
    part(this.#panel, '.response').textContent = response
    part(this.#panel, '.status').textContent = status
    part(this.#panel, '.status').dataset['outcome'] = outcome
  }

  #say(text: string): void {
    say(part(this.form, '.result'), text)
  }

  async #copy(): Promise<void> {
    const request = part(this.#panel, '.request')
    try {
      await navigator.clipboard.writeText(request.textContent)
      this.#say('The curl line is copied.')
    } catch {
      // A page that came by plain HTTP from another machine has no clipboard.
      getSelection()?.selectAllChildren(request)
      this.#say('The curl line is selected: copy it with your keyboard.')
    }
  }
}

const create = new Action(
  'create',
  () => ({
    method: 'POST',
    url: resolve('plants'),
    body: toJson(valueOf('new-id').trim(), valueOf('new-name'), valueOf('new-tag')),
  }),
  ({ body }) => {
    create.form.reset()
    showPage()
    return `Created “${isolate(cut((JSON.parse(body) as Plant).name, MAX_NAME))}”.`
  },
)
const list = new Action('list', () => ({ method: 'GET', url: firstPage() }), showPlants)
const remove = new Action(
  'delete',
  () => ({ method: 'DELETE', url: resolve(`plants/${encode(valueOf('delete-id').trim())}`) }),
  () => {
    remove.form.reset()
    showPage()
    return 'Deleted.'
  },
)

function firstPage(): string {
  const after = valueOf('list-after').trim()
  return resolve(`plants?limit=${valueOf('list-limit')}${after === '' ? '' : `&after=${encode(after)}`}`)
}

function showPage(url: string = pages.at(-1) ?? firstPage()): void {
  void list.send({ method: 'GET', url })
}

/** Shows a page of the list, and says in words what is in view. */
function showPlants({ url, headers, body }: Reply): string {
  const plants = JSON.parse(body) as readonly Plant[]
  const at = pages.indexOf(url)
  pages = at !== -1 ? pages.slice(0, at + 1) : url === nextPage ? [...pages, url] : [url]
  const [, link] = /<([^>]*)>; *rel="?next/.exec(headers.get('Link') ?? '') ?? []
  setNextPage(link === undefined ? undefined : new URL(link, url).href)
  const none = url.includes('after=')
    ? 'No plants beyond this id.'
    : 'No plants yet. Create the first one: an id and a name will do.'
  showItems(plants.map(toItem), plants.length > 0 ? '' : none)
  if (!isAccessKnown) void askAccess()
  const more = nextPage === undefined ? 'The list ends here.' : 'More follow.'
  return `Page ${pages.length}: ${plants.length} ${plants.length === 1 ? 'plant' : 'plants'}. ${more}`
}

function showItems(items: readonly HTMLElement[], none: string): void {
  byId('plants').replaceChildren(...items)
  say(byId('none'), none)
}

/** Marks the buttons that lead nowhere. If they were disabled, they would lose the focus. */
function setNextPage(url: string | undefined): void {
  nextPage = url
  byId('next').ariaDisabled = String(url === undefined)
  byId('previous').ariaDisabled = String(pages.length < 2)
}

function toItem({ name, tag }: Plant): HTMLElement {
  const item = document.createElement('li')
  item.append(toText(name, 'name'))
  if (tag !== undefined) item.append(toText(tag, 'tag'))
  return item
}

/** Text in the direction of its own script; a long one can be unfolded. */
function toText(text: string, className: string): HTMLElement {
  const isLong = text.length > MAX_NAME
  const element = document.createElement(isLong ? 'details' : 'span')
  element.className = className
  element.dir = 'auto'
  if (isLong) {
    const summary = document.createElement('summary')
    summary.textContent = cut(text, MAX_NAME)
    element.append(summary)
  }
  element.append(text)
  return element
}

/** Takes a token that was typed or came with the address. */
function setToken(text: string): void {
  token = text.trim().replace(/^Bearer +/i, '')
  isAccessKnown = false
  pages = []
  setNextPage(undefined)
  list.cancel()
  const isToken = /^[\w\-.~+/]+=*$/.test(token)
  if (!isToken) token = ''
  showItems([], isToken ? '' : 'Enter a token first: then its plants stand here.')
  say(byId('access'), isToken ? '…' : 'none yet')
  const field = byId('token') as HTMLInputElement
  field.value = ''
  field.placeholder = isToken ? 'One is in use' : ''
  showError(field, isToken || text === '' ? '' : 'A token has letters, digits and -._~+/ only, then perhaps "=".')
  if (isToken) showPage()
}

function takeToken(): string {
  const [address, text] = location.href.split('#token=')
  if (text === undefined) return ''
  history.replaceState(null, '', address)
  return text.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)))
}

/** Finds out whether the token may write. */
async function askAccess(): Promise<void> {
  const asked = token
  isAccessKnown = true
  // "-" is no id, so nothing is deleted. A token that may only read is refused before that is seen.
  const reply = await fetchReply({ method: 'DELETE', url: resolve('plants/-') }).catch(() => undefined)
  if (token !== asked) return
  if (reply === undefined) isAccessKnown = false
  else say(byId('access'), reply.status === 403 ? 'may only read' : 'may read and write')
}

/** Says whether the service is ready, and asks until it is. */
async function watchService(): Promise<void> {
  if (isWatching) return
  isWatching = true
  let wasAway = false
  for (;;) {
    const reply = await fetchReply({ method: 'GET', url: resolve('readyz') }).catch(() => undefined)
    const isReady = reply !== undefined && reply.status < 500
    const place = byId('service')
    say(place, isReady ? 'ready' : `${reply === undefined ? 'away' : 'not ready'}, asking again …`)
    place.dataset['outcome'] = isReady ? 'success' : 'error'
    if (isReady) break
    wasAway = true
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
  isWatching = false
  if (wasAway && token !== '') showPage()
}

async function fetchReply({ method, url, body }: Request): Promise<Reply> {
  const start = performance.now()
  const headers = new Headers()
  if (token !== '') headers.set('Authorization', `Bearer ${token}`)
  if (body !== undefined) headers.set('Content-Type', 'application/json')
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const response = await fetch(url, { method, headers, body: body ?? null, signal, cache: 'no-store' })
  const text = await response.text()
  const { status, statusText } = response
  const statusLine = `${status} ${statusText}`.trim()
  return { url, status, statusLine, headers: response.headers, body: text, ms: Math.round(performance.now() - start) }
}

/** Shows an error beside the field that it speaks of, and gives what is left to say. */
function showServiceError({ status, statusLine, body }: Reply): string {
  const { error, message } = JSON.parse(body) as ServiceError
  if (status === 401) say(byId('access'), 'refused')
  const field = FIELDS_OF_ERRORS[error]
  const rules = error === 40002 ? [...message.matchAll(/\b(id|name|tag) must [^;]*/g)] : []
  for (const [rule, member] of rules) showError(byId(`new-${member}`), rule)
  if (field !== undefined) showError(byId(field), message)
  return field === undefined && rules.length === 0 ? `${statusLine}: ${message}` : `${statusLine}.`
}

function showError(field: HTMLElement, message: string): void {
  const place = document.getElementById(`${field.id}-error`)
  if (place === null) return
  field.ariaInvalid = String(message !== '')
  say(place, message)
}

/** The id goes from the field to the request as text: a number would lose its digits beyond 2^53. */
function toJson(id: string, name: string, tag: string): string {
  const members: Omit<NewPlant, 'id'> = tag === '' ? { name } : { name, tag }
  // What is no number is sent as a string, for the service to say what is wrong with it.
  const value = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(id) ? id : JSON.stringify(id)
  return `{"id":${value},${JSON.stringify(members).slice(1)}`
}

function toCurl({ method, url, body }: Request): string {
  const lines = [
    `curl -i ${method === 'DELETE' ? '-X DELETE ' : ''}${quoteForShell(url)}`,
    '-H "Authorization: Bearer $TOKEN"',
  ]
  if (body !== undefined) lines.push("-H 'Content-Type: application/json'", `-d ${quoteForShell(body)}`)
  return lines.join(' \\\n  ')
}

function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

function formatReply({ headers, body }: Reply): string {
  const fields = SHOWN_HEADERS.filter((name) => headers.has(name)).map((name) => `${name}: ${headers.get(name)}\n`)
  return `${fields.join('')}\n${cut(body, MAX_BODY)}`.trim()
}

function cut(text: string, max: number): string {
  if (text.length <= max) return text
  // Not between the two halves of a character.
  const start = text.slice(0, max).replace(/[\ud800-\udbff]$/, '')
  return `${start} … and ${(text.length - start.length).toLocaleString('en')} more characters`
}

/** Keeps text of either direction apart from the sentence around it. */
function isolate(text: string): string {
  return `\u2068${text}\u2069`
}

/** A relative reference holds under any path that a proxy puts before that of the page. */
function resolve(path: string): string {
  return new URL(path, document.baseURI).href
}

function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed())
}

/** A live region speaks only of what has changed. */
function say(place: Element, text: string): void {
  if (place.textContent !== text) place.textContent = text
}

function valueOf(id: string): string {
  return (byId(id) as HTMLInputElement | HTMLSelectElement).value
}

function byId(id: string): HTMLElement {
  return document.getElementById(id)!
}

function part(of: Element, selector: string): HTMLElement {
  return of.querySelector<HTMLElement>(selector)!
}

byId('token-form').addEventListener('submit', (event) => {
  event.preventDefault()
  setToken(valueOf('token'))
})
byId('forget').onclick = () => setToken('')
byId('next').onclick = () => {
  if (nextPage !== undefined) showPage(nextPage)
}
byId('previous').onclick = () => {
  const previous = pages.at(-2)
  if (previous !== undefined) showPage(previous)
}
addEventListener('hashchange', () => {
  const taken = takeToken()
  // The address may be somebody else's, and then the person would create plants for another owner.
  if (taken !== '' && (token === '' || confirm(QUESTION))) setToken(taken)
})
addEventListener('focus', () => void watchService())
setToken(token)
void watchService()
