import type { components } from './schema.d.ts'

/** A listed plant. Its id is a string, because numbers lose precision beyond 2^53. */
type Plant = Omit<components['schemas']['ListedPlant'], 'id'> & { readonly id: string }

/** The URL is relative, so that it works under any path prefix that a proxy adds. */
type Request = Readonly<{ method: 'GET' | 'POST' | 'DELETE'; url: string; body?: string }>
type Reply = Awaited<ReturnType<typeof ask>>

/** The id of a form that sends requests. */
type Place = 'create' | 'list' | 'delete'
const PLACES: readonly Place[] = ['create', 'list', 'delete']

/** The last request of a form, and its response as soon as it arrives. Empty once the form has been edited. */
type Exchange = Partial<{ request: Request; isBusy: boolean; reply: Reply; says: string }>

const SHOWN_HEADERS = ['Content-Type', 'Link', 'WWW-Authenticate', 'Allow', 'Retry-After', 'X-Request-Id']
const QUESTION = 'The link contains another token than the one in use. Switch to it? Cancel unless you trust the link.'
const RANGE = 'id must be a whole number from -9223372036854775808 to 9223372036854775807, in digits.'
/**
 * Matches only our own input fields, which have an error element. Browser extensions and translators add inputs too.
 */
const FIELDS = 'input[aria-describedby$="-error"]'
const NO_TOKEN = 'Enter a token to see its plants here.'

/** The maximum number of characters shown of a name and of a body. Rendering very long texts is slow. */
const MAX_NAME = 100
const MAX_BODY = 2000
const TIMEOUT_MS = 30_000
const RETRY_MS = 2000

/** Removed from the URL before anything else happens, so that a bookmark can't contain it. */
const linkToken = takeToken()
let state = newState('')
/** The readiness of the service, as displayed. */
let service = '…'
let timer = 0
/** The list items by the JSON of their plant. Reusing an item keeps it expanded and focused. */
let items = new Map<string, HTMLElement>()
/** The text that was last set on each element. The text in the document can differ, because translators replace it. */
const texts = new WeakMap<Element, string>()

/** Creates the state that belongs to one token. The token is stored nowhere else, and a new token gets a new state. */
function newState(token: string, isFromLink = false) {
  return {
    token,
    /** Whether the token came from a link and hasn't been used for a write yet. */
    isFromLink,
    access: token === '' ? 'none yet' : '…',
    exchanges: { create: {}, list: {}, delete: {} } as Record<Place, Exchange>,
    /** Error messages by field id. */
    errors: {} as Record<string, string>,
    plants: [] as readonly Plant[],
    /** Explains why the list is empty. */
    none: NO_TOKEN,
    /** The URLs of the pages up to the current one, of the next page, and of the last request. */
    pages: [] as readonly string[],
    next: '',
    wanted: '',
    /** The id of the plant whose row asks for confirmation of a delete, and the message about it. */
    doubted: '',
    note: '',
  }
}

/** Renders the state. Nothing else changes the document according to the state. */
function draw(): void {
  const { token, isFromLink, access, exchanges, errors, plants, none, pages, next, note } = state
  say('#service', service).dataset['outcome'] = service === 'ready' ? 'success' : service === '…' ? '' : 'error'
  say('#access', access)
  say('#token-source', isFromLink ? 'Using the token from the link' : '')
  find('#token').setAttribute('placeholder', token === '' ? '' : 'One is in use')
  for (const field of document.querySelectorAll<HTMLInputElement>(FIELDS)) {
    const error = errors[field.id] ?? ''
    say(`#${field.id}-error`, error)
    field.ariaInvalid = String(error !== '')
  }
  for (const place of PLACES) {
    const { request, isBusy = false, reply, says = '' } = exchanges[place]
    find(`#${place} button:not([type])`).ariaDisabled = String(isBusy)
    say(`#${place} .result`, place === 'list' ? `${note} ${says}`.trim() : says)
    say(`#${place} ~ .exchange .request`, toCurl(request ?? requestOf(place)))
    const outcome = reply === undefined ? '' : reply.ok ? 'success' : 'error'
    const status = say(`#${place} ~ .exchange .status`, reply?.head ?? 'Response')
    status.dataset['outcome'] = outcome
    const response = say(
      `#${place} ~ .exchange .response`,
      reply?.shown ?? (request ? 'Waiting for it …' : 'Not sent yet.'),
    )
    // Until a response arrives, both elements contain the page's own text, which can be translated.
    status.translate = response.translate = reply === undefined
  }
  say('#none', plants.length === 0 ? none : '')
  drawPlants()
  // Use aria-disabled, because a button with the `disabled` attribute loses the focus.
  find('#next').ariaDisabled = String(next === '')
  find('#previous').ariaDisabled = String(pages.length < 2)
}

function drawPlants(): void {
  const list = find('#plants')
  const focused = Array.from(list.children).findIndex((item) => item.contains(document.activeElement))
  const shown = state.plants.map((plant) => items.get(JSON.stringify(plant)) ?? toItem(plant))
  items = new Map(state.plants.map((plant, at) => [JSON.stringify(plant), shown[at]!]))
  for (const item of [...list.children]) if (!shown.includes(item as HTMLElement)) item.remove()
  for (const [at, item] of shown.entries()) {
    if (list.children[at] !== item) list.insertBefore(item, list.children[at] ?? null)
    const { id, name } = state.plants[at]!
    const [doubt, confirm] = item.querySelectorAll('button')
    const [label, of] = [id === state.doubted ? 'Keep' : 'Delete', `plant ${id}, ${quote(name)}`]
    setText(doubt!, label).ariaLabel = `${label} ${of}`
    confirm!.hidden = id !== state.doubted
    confirm!.ariaLabel = `Delete for good ${of}`
  }
  // Move the focus to the next row, so that keyboard users can continue after a delete.
  if (focused === -1 || list.contains(document.activeElement)) return
  find('button', shown[Math.min(focused, shown.length - 1)] ?? find('#list')).focus()
}

function toItem({ id, name, tag }: Plant): HTMLElement {
  const item = document.importNode((find('#plant') as HTMLTemplateElement).content, true).querySelector('li')!
  const [doubt, confirm] = item.querySelectorAll('button')
  item.prepend(toText(id, 'id'), toText(name, 'name'), ...(tag === undefined ? [] : [toText(tag, 'tag')]))
  doubt!.onclick = () => {
    state.doubted = state.doubted === id ? '' : id
    state.note = state.doubted === id ? `Delete plant ${quote(id)}? This cannot be undone.` : ''
    draw()
  }
  confirm!.onclick = () => press('delete', deletionOf(id))
  return item
}

/** Creates an element for a text of a plant, with the text's own writing direction. Long texts are collapsed. */
function toText(text: string, className: string): HTMLElement {
  const isLong = text.length > MAX_NAME
  const element = Object.assign(document.createElement(isLong ? 'details' : 'span'), {
    className,
    dir: 'auto',
    translate: false,
  })
  if (isLong) element.append(Object.assign(document.createElement('summary'), { textContent: cut(text, MAX_NAME) }))
  element.append(text)
  return element
}

/** Returns the request that a form would send. */
function requestOf(place: Place): Request {
  if (place === 'delete') return deletionOf(valueOf('delete-id').trim())
  if (place === 'list') {
    const after = valueOf('list-after').trim()
    const query = new URLSearchParams({ limit: valueOf('list-limit'), ...(after !== '' && { after }), include: 'id' })
    return { method: 'GET', url: `plants?${query}` }
  }
  const [id, name, tag] = [valueOf('new-id').trim(), valueOf('new-name'), valueOf('new-tag')]
  // Insert the id as text, because numbers lose precision beyond 2^53.
  const members = JSON.stringify({ name, ...(tag !== '' && { tag }) }).slice(1)
  const body = showMarks(`{"id":${isInt64(id) ? id : JSON.stringify(id)},${members}`)
  return { method: 'POST', url: 'plants', body }
}

function deletionOf(id: string): Request {
  return { method: 'DELETE', url: `plants/${encodeURIComponent(id.toWellFormed())}` }
}

/** Sends the request of a form if all of its fields are valid. */
function submit(place: Place): void {
  const form = document.forms.namedItem(place)!
  // Ignore the second click of a double click, because the first one has already succeeded and reset the form.
  if (state.exchanges[place].reply?.ok && form.matches(':invalid')) return
  const fields = [...form.querySelectorAll<HTMLInputElement>(FIELDS)]
  for (const field of fields) state.errors[field.id] = errorIn(field)
  const wrong = fields.find(({ id }) => state.errors[id] !== '')
  if (wrong === undefined) return press(place, requestOf(place))
  wrong.focus()
  draw()
}

/** Returns the validation error of a field, or an empty string. */
function errorIn({ id, value, required }: HTMLInputElement): string {
  if (value === '' && !required) return ''
  if (id === 'new-name' || id === 'new-tag') return value === '' ? 'A plant needs a name.' : ''
  return isInt64(value.trim()) ? '' : RANGE
}

function isInt64(text: string): boolean {
  return /^-?(?:0|[1-9]\d{0,18})$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text)
}

/** Sends a request that the user triggered, unless it's already in progress or has no URL. */
function press(place: Place, request: Request): void {
  if (request.url === '') return
  if (state.exchanges[place].isBusy && (place !== 'list' || request.url === state.wanted)) return
  if (request.url !== deletionOf(state.doubted).url) state.doubted = ''
  state.note = ''
  void send(place, request)
}

/** Reloads the list page that was requested last. */
function refresh(): void {
  void send('list', { method: 'GET', url: state.wanted || requestOf('list').url })
}

async function send(place: Place, request: Request): Promise<void> {
  const { reply: earlier, says = '' } = state.exchanges[place]
  // Keep the error message during a retry, so that screen readers announce it only once.
  const exchange: Exchange = { request, isBusy: true, says: earlier?.isLost === true ? says : '' }
  const isOfRow = request.url === deletionOf(state.doubted).url
  if (place === 'list') state.wanted = request.url
  state.exchanges[place] = exchange
  draw()
  const reply = await ask(request)
  // A later request, or another token, has replaced this request.
  if (state.exchanges[place] !== exchange) return
  Object.assign(exchange, { isBusy: false, reply, says: takeReply(place, request, reply) })
  if (isOfRow) [state.note, exchange.says] = [exchange.says!, '']
  draw()
  if (reply.isLost) void watchService()
}

/** Applies a response to the state and returns a message about it. The response can also come from a proxy. */
function takeReply(place: Place, request: Request, reply: Reply): string {
  const { status, statusLine, value } = reply
  const { error = 0, message } = (value ?? {}) as Partial<components['schemas']['Error']>
  const doubt =
    place === 'list' ? '' : ' The change may or may not have been made: check the list when the service is back.'
  if (status === 0) return `The service cannot be reached.${doubt}`
  const success = takeSuccess(place, request.url, reply)
  const isError = typeof message === 'string' && Math.floor(error / 100) === status
  if (!isError && success === undefined) return `${statusLine}: this response is not from plant-store.${doubt}`
  const rules: string[][] = [...String(message).matchAll(/\b(name|tag) (?:contains|is|must) [^;]*/g)]
  if (error === 40401 || error === 40900) rules.push([message!, 'id'])
  // These responses prove that the token is valid. Other errors can occur before the token is checked.
  if (success !== undefined || rules.length > 0 || status === 403) {
    state.errors['token'] = ''
    if (place !== 'list') state.access = status === 403 ? 'may only read' : 'may read and write'
    else if (!state.access.startsWith('may')) state.access = 'may read; not seen to write yet'
  }
  // If the form was edited during the request, keep its content, and don't show errors about its previous content.
  const isUnchanged = toCurl(requestOf(place)) === toCurl(request)
  if (success !== undefined) {
    if (place !== 'list' && isUnchanged) document.forms.namedItem(place)!.reset()
    if (place !== 'list') {
      state.isFromLink = false
      refresh()
    }
    return success
  }
  if (status === 401) {
    Object.assign(state, { access: state.token === '' ? 'none yet' : 'refused', plants: [], none: NO_TOKEN })
    state.errors['token'] = message!
  }
  if (!isUnchanged || rules.length === 0) return `${statusLine}: ${message}`
  for (const [rule, member] of rules) state.errors[`${place === 'create' ? 'new' : place}-${member}`] = rule!
  return `${statusLine}.`
}

/** Applies a successful response to the state and returns a message, or undefined if it isn't a valid success. */
function takeSuccess(place: Place, url: string, { status, next = '', value }: Reply): string | undefined {
  if (place === 'create' && status === 200 && isPlant(value)) return `Created “${quote(value.name)}”.`
  if (place === 'delete' && status === 204) {
    state.plants = state.plants.filter(({ id }) => deletionOf(id).url !== url)
    return 'Deleted.'
  }
  const isList = Array.isArray(value) && value.every((item) => isPlant(item) && 'id' in item)
  if (place !== 'list' || status !== 200 || !isList) return undefined
  const at = state.pages.indexOf(url)
  state.pages = at !== -1 ? state.pages.slice(0, at + 1) : url === state.next ? [...state.pages, url] : [url]
  state.next = next
  state.plants = value
  const none = 'No plants yet. Create the first one: an id and a name will do.'
  state.none = url.includes('after=') ? 'No plants beyond this id.' : none
  const count = `${value.length} ${value.length === 1 ? 'plant' : 'plants'}`
  return `Page ${state.pages.length}: ${count}. ${next === '' ? 'The list ends here.' : 'More follow.'}`
}

function isPlant(value: unknown): value is Plant {
  const { id = '', name, tag = '' } = (value ?? {}) as Partial<Plant>
  return [id, name, tag].every((text) => typeof text === 'string')
}

/** Switches to a token that was typed or came from a link. */
function enterToken(text: string, isFromLink = false): void {
  const token = text.trim().replace(/^Bearer +/i, '')
  // Ignore the second click of a double click, because the first one has reset the form.
  if (token === '' && state.token !== '') return
  if (/^[\w\-.~+/]+=*$/.test(token)) {
    // An attacker can have made the link, so that the user creates plants for the attacker's owner.
    if (isFromLink && state.token !== '' && (token === state.token || !confirm(QUESTION))) return
    state = newState(token, isFromLink)
    document.forms.namedItem('token-form')!.reset()
    return refresh()
  }
  const subject = isFromLink ? 'The token from the link is malformed: a' : 'A'
  state.errors['token'] = `${subject} token has letters, digits and -._~+/ only, then perhaps "=".`
  draw()
}

/** Returns the token from the URL fragment, and removes it from the URL. */
function takeToken(): string | undefined {
  const [address, ...rest] = location.href.split('#token=')
  if (rest.length === 0) return undefined
  history.replaceState(null, '', address)
  const text = rest.join('#token=')
  return text.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)))
}

/** Polls the readiness until the service is ready, then reloads the list if a request failed in the meantime. */
async function watchService(isAgain = false): Promise<void> {
  const { value } = await ask({ method: 'GET', url: 'readyz' })
  const { status, error } = (value ?? {}) as { status?: unknown; error?: unknown }
  service = status === 'ready' ? status : `${error === undefined ? 'unreachable' : 'not ready'}, retrying …`
  draw()
  const isLost = PLACES.some((place) => state.exchanges[place].reply?.isLost)
  if (service !== 'ready' || (isLost && !isAgain)) {
    clearTimeout(timer)
    timer = setTimeout(() => void watchService(true), RETRY_MS)
  } else if (isAgain && state.token !== '') refresh()
}

/** Sends a request. Returns the status 0 if there is no response. */
async function ask({ method, url, body }: Request) {
  const start = performance.now()
  const headers = new Headers(body === undefined ? {} : { 'Content-Type': 'application/json' })
  if (state.token !== '') headers.set('Authorization', `Bearer ${state.token}`)
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  try {
    const response = await fetch(url, { method, headers, body: body ?? null, signal, cache: 'no-store' })
    const text = await response.text()
    const { status, ok, statusText, headers: fields } = response
    // HTTP/2 has no status text.
    const statusLine = `${status} ${statusText}`.trim()
    const head = `${statusLine} · ${Math.round(performance.now() - start)} ms`
    const lines = SHOWN_HEADERS.filter((name) => fields.has(name)).map((name) => `${name}: ${fields.get(name)}\n`)
    const shown = showMarks(`${lines.join('')}\n${cut(text, MAX_BODY)}`).trim()
    const [, link] = /<([^>]*)>; *rel="?next/.exec(fields.get('Link') ?? '') ?? []
    // Turn ids into strings. The pattern can't match inside a JSON string, where quotes are escaped.
    const json = new Response(text.replace(/\{"id":(-?\d+)/g, '{"id":"$1"')).json().catch(() => undefined)
    const value: unknown = (fields.get('Content-Type') ?? '').startsWith('application/json') ? await json : undefined
    const next = link && new URL(link, response.url).href
    return { status, ok, isLost: status >= 500, statusLine, head, shown, value, next }
  } catch {
    return { status: 0, ok: false, isLost: true, statusLine: '', head: 'No response', shown: '' }
  }
}

function toCurl({ method, url, body }: Request): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
  const lines = [`curl -i ${method === 'DELETE' ? '-X DELETE ' : ''}${quoted(new URL(url, document.baseURI).href)}`]
  lines.push('-H "Authorization: Bearer $TOKEN"')
  if (body !== undefined) lines.push("-H 'Content-Type: application/json'", `-d ${quoted(body)}`)
  return lines.join(' \\\n  ')
}

/** Escapes bidirectional control characters as JSON allows, because they would reorder the surrounding text. */
function showMarks(text: string): string {
  return text.replace(/\p{Bidi_Control}/gu, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function cut(text: string, max: number): string {
  if (text.length <= max) return text
  // Don't split a surrogate pair.
  const start = text.slice(0, max).replace(/[\ud800-\udbff]$/, '')
  return `${start} … and ${(text.length - start.length).toLocaleString('en')} more characters`
}

/** Isolates a text of a plant, so that its direction and translation don't mix with those of the sentence around it. */
function quote(text: string): string {
  return `\u2068${showMarks(cut(text, MAX_NAME))}\u2069`
}

function say(selector: string, text: string): HTMLElement {
  return setText(find(selector), text)
}

/**
 * Sets a text if it has changed. Setting it again would make screen readers repeat it, and translators translate it
 * again.
 */
function setText(element: HTMLElement, text: string): HTMLElement {
  if (texts.get(element) === text) return element
  texts.set(element, text)
  // Parts with an odd index are quoted texts of plants.
  const parts = text.split(/(\u2068[^\u2069]*\u2069)/).map((part, index) => {
    if (index % 2 === 0) return part
    return Object.assign(document.createElement('span'), { textContent: part, translate: false })
  })
  element.replaceChildren(...parts)
  return element
}

function valueOf(id: string): string {
  return (find(`#${id}`) as HTMLInputElement).value
}

function find(selector: string, within: ParentNode = document): HTMLElement {
  return within.querySelector<HTMLElement>(selector)!
}

async function copy(place: Place): Promise<void> {
  const curl = toCurl(state.exchanges[place].request ?? requestOf(place))
  let how = 'copied'
  try {
    await navigator.clipboard.writeText(curl)
  } catch {
    // The clipboard API isn't available on pages loaded by plain HTTP from another machine.
    const request = find(`#${place} ~ .exchange .request`)
    texts.delete(request)
    setText(request, curl)
    getSelection()?.selectAllChildren(request)
    how = 'selected: copy it with the keyboard'
  }
  state.exchanges[place].says = `The curl line is ${how}. Set TOKEN to your token in the shell first.`
  draw()
}

for (const place of PLACES) {
  const form = document.forms.namedItem(place)!
  form.after((find('#exchange') as HTMLTemplateElement).content.cloneNode(true))
  const of = `: ${find('h2', form).textContent}`
  for (const part of form.nextElementSibling!.querySelectorAll('[aria-label]')) part.ariaLabel = part.ariaLabel! + of
  find(`#${place} ~ .exchange button`).onclick = () => void copy(place)
  form.onsubmit = () => submit(place)
  form.oninput = ({ target }) => {
    state.errors[(target as HTMLElement).id] = ''
    if (!state.exchanges[place].isBusy) state.exchanges[place] = {}
    draw()
  }
}
find('#token-form').onsubmit = () => enterToken(valueOf('token'))
find('#forget').onclick = () => {
  state = newState('')
  for (const form of document.forms) form.reset()
  draw()
}
find('#next').onclick = () => press('list', { method: 'GET', url: state.next })
find('#previous').onclick = () => press('list', { method: 'GET', url: state.pages.at(-2) ?? '' })
addEventListener('submit', (event) => event.preventDefault())
addEventListener('hashchange', () => {
  const token = takeToken()
  if (token !== undefined) enterToken(token, true)
})
addEventListener('focus', () => void watchService())
if (linkToken === undefined) draw()
else enterToken(linkToken, true)
void watchService()
