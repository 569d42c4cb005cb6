import { createPlantClient, type ListedPlant, type PlantStoreError } from '../../../../client/plant-client.ts'
import { find, findField, quote, setText } from './document.ts'
import { describeEmptyPage, describeRange, explainError, findIdError, MAX_ID, type Write } from './messages.ts'
import { fetchReadiness, type Readiness } from './readiness.ts'
import { drawRows } from './rows.ts'
import { CANCELED, createLoggingFetch, drawLog, type LoggedRequest } from './request-log.ts'
import { findTokenError, parseToken, SWITCH_QUESTION, takeLinkToken } from './token.ts'

type Cursors = readonly (bigint | undefined)[]

const RETRY_MS = 2000

/**
 * The token from the URL. It's removed from the URL before anything else happens, so that bookmarks can't contain it.
 */
const linkToken = takeLinkToken()
let state = newState('')
/** Undefined until the service has responded, or turned out to be unreachable. */
let readiness: Readiness | undefined
let timer: ReturnType<typeof setTimeout> | undefined

/** Creates the state that belongs to one token. Only the state and its clients store the token. */
function newState(token: string, isFromLink = false) {
  const log: LoggedRequest[] = []
  const url = new URL('.', document.baseURI)
  const logged = createLoggingFetch(log, draw, () => void watchService())
  // A client requires a token, so use a placeholder if there is none. The page never sends it.
  const options = { url, token: token || 'missing', fetch: logged }
  return {
    token,
    tokenStatus: (token === '' ? 'missing' : 'unchecked') as 'missing' | 'unchecked' | 'set' | 'rejected',
    hasLinkToken: isFromLink,
    /** Whether the token came from a link and hasn't been used for a write yet. */
    isFromLink,
    isTokenFormOpen: !isFromLink,
    isTokenVisible: false,
    client: createPlantClient(options),
    /** Reads lists without retries, because the page reloads the list when the service is ready again. */
    reader: createPlantClient({ ...options, retries: 0 }),
    log,
    logMessage: '',
    /** Aborts all writes. */
    controller: new AbortController(),
    /** Aborts the pending list request. */
    listController: undefined as AbortController | undefined,
    listError: '',
    /** Whether to reload the list as soon as the service is ready. */
    isListOutdated: false,
    plants: [] as readonly ListedPlant[],
    /**
     * The cursors of all pages up to the displayed page (`cursors`) or up to the requested page (`requested`), and the
     * cursor of the page after the displayed page (`next`).
     */
    cursors: [] as Cursors,
    requested: [undefined] as Cursors,
    next: undefined as bigint | undefined,
    isCreating: false,
    isIdTyped: false,
    /** Whether the form hasn't been edited since the last plant was added. */
    isFormReset: false,
    /** The id of the plant whose row shows the delete confirmation. */
    pendingDeleteId: undefined as bigint | undefined,
    deletingIds: new Set<bigint>(),
    /** Error messages, keyed by field id. */
    errors: {} as Record<string, string>,
    message: '',
  }
}

/** Renders the whole state. To update the document, change the state and call this function. */
function draw(): void {
  const { tokenStatus, isTokenVisible, errors, plants, cursors, next, listController, requested } = state
  setTextOf('#service', readiness ?? '').dataset['state'] = readiness?.slice(0, 5) ?? ''
  setTextOf('#link-notice span', state.hasLinkToken ? 'Using the token from the link' : '')
  const notice = find('#link-notice')
  notice.hidden = !state.hasLinkToken
  notice.dataset['used'] = String(!state.isFromLink)
  const isOpen = state.isTokenFormOpen || tokenStatus === 'rejected'
  find('#token-form').hidden = !isOpen
  setTextOf('#token-button', tokenStatus === 'set' ? 'Token set' : 'Enter token').ariaExpanded = String(isOpen)
  find('#token-form .forget').hidden = state.token === ''
  find('#token').dataset['visible'] = String(isTokenVisible)
  setTextOf('#show', isTokenVisible ? 'Hide' : 'Show')
  setTextOf('#token-progress', tokenStatus === 'unchecked' ? 'Checking …' : '')
  for (const id of ['token', 'go-to-id', 'new-id', 'new-name', 'new-tag']) {
    const error = errors[id] ?? ''
    setTextOf(`#${id}-error`, error)
    find(`#${id}`).ariaInvalid = String(error !== '')
  }

  find('#plants').hidden = tokenStatus !== 'set'
  find('table').hidden = plants.length === 0
  find('table').ariaBusy = String(listController !== undefined)
  if (!state.isIdTyped && !state.isCreating) findField('new-id').value = suggestId()
  find('#create button').ariaDisabled = String(state.isCreating)
  setTextOf('#message', `${state.message} ${state.listError}`.trim())
  drawRows(state, { ask: askToDelete, delete: (plant) => void deletePlant(plant) })
  setTextOf('#empty', plants.length === 0 && cursors.length > 0 ? describeEmptyPage(cursors.at(-1)) : '')
  const isLoading = listController !== undefined && requested !== cursors
  setTextOf('#range', isLoading ? 'Loading …' : describeRange(plants, next))
  // Use aria-disabled, because a button with the `disabled` attribute loses the focus.
  find('#next').ariaDisabled = String(next === undefined)
  find('#previous').ariaDisabled = String(cursors.length < 2)
  find('#log').hidden = state.log.length === 0
  setTextOf('#log-message', state.logMessage)
  drawLog(state.log, (message) => {
    state.logMessage = message
    draw()
  })
}

/** Returns the last id of the whole list, or undefined unless the end of the list is in view. */
function findLastId(): bigint | undefined {
  if (state.cursors.length === 0 || state.next !== undefined) return undefined
  return state.plants.at(-1)?.id ?? state.cursors.at(-1) ?? 0n
}

function suggestId(): string {
  const last = findLastId()
  return last === undefined || last === MAX_ID ? '' : String(last + 1n)
}

/**
 * Loads the page that starts after the last cursor. If that page ends before `soughtId`, goes on to the page where
 * `soughtId` belongs. Returns whether the page is shown.
 */
async function loadList(cursors = state.requested, soughtId?: bigint): Promise<boolean> {
  const { reader, listController: earlier } = state
  const own = state
  const controller = new AbortController()
  Object.assign(own, { requested: cursors, listController: controller })
  earlier?.abort(CANCELED)
  draw()
  try {
    const limit = Number(findField('page-size').value)
    const { plants, next } = await reader.listPage({ limit, after: cursors.at(-1), signal: controller.signal })
    if (own.listController !== controller) return false
    if (soughtId !== undefined && next !== undefined && next < soughtId)
      return await loadList([...cursors, next], soughtId)
    Object.assign(own, { plants, next, cursors, listController: undefined, listError: '', isListOutdated: false })
    acceptToken()
    return true
  } catch (error) {
    if (own.listController !== controller) return false
    own.listController = undefined
    showError(own, error)
    return false
  } finally {
    draw()
  }
}

/** Loads another page that the user requested, unless that page is already being loaded. */
function goToPage(cursors: Cursors): void {
  if (state.listController !== undefined && cursors.at(-1) === state.requested.at(-1)) return
  Object.assign(state, { pendingDeleteId: undefined, message: '' })
  void loadList(cursors)
}

async function goToId(): Promise<void> {
  const text = findField('go-to-id').value.trim()
  if (!validate({ 'go-to-id': text === '' ? '' : findIdError(text) })) return
  const id = text === '' ? undefined : BigInt(text)
  Object.assign(state, { pendingDeleteId: undefined, message: '' })
  const isFirst = id === undefined || id === -MAX_ID - 1n
  if (!(await loadList(isFirst ? [undefined] : [undefined, id - 1n]))) return
  if (id !== undefined && state.plants[0]?.id !== id) state.message = `Plant ${quote(text)} doesn't exist.`
  draw()
}

async function createPlant(): Promise<void> {
  const own = state
  const readFields = (): string[] => ['new-id', 'new-name', 'new-tag'].map((id) => findField(id).value)
  const fields = readFields()
  const [idText, name, tag] = [fields[0]!.trim(), fields[1]!, fields[2]!]
  // Ignore the second click of a double click: the first click may already have added the plant and reset the form.
  if (own.isCreating || own.isFormReset) return
  const nameError = name === '' ? 'Name is required.' : ''
  if (!validate({ 'go-to-id': '', 'new-id': findIdError(idText), 'new-name': nameError, 'new-tag': '' })) return
  const plant = { id: BigInt(idText), name, ...(tag !== '' && { tag }) }
  Object.assign(own, { isCreating: true, pendingDeleteId: undefined, message: `Adding “${quote(name)}” …` })
  draw()
  try {
    await own.client.create(plant, { signal: own.controller.signal })
  } catch (error) {
    own.isCreating = false
    showError(own, error, { action: 'add', id: plant.id }, readFields().join('\0') === fields.join('\0'))
    draw()
    return
  }
  Object.assign(own, { isCreating: false, isFromLink: false, message: `Added “${quote(name)}”.` })
  if (own !== state) return
  // If the form was edited in the meantime, keep its content.
  if (findField('new-id').value === fields[0]) own.isIdTyped = false
  if (readFields().join('\0') === fields.join('\0')) {
    own.isFormReset = true
    findField('new-name').value = findField('new-tag').value = ''
    if (find('#create').contains(document.activeElement)) findField('new-name').focus()
  }
  const last = findLastId()
  const isAtEnd = last !== undefined && plant.id > last
  if (isAtEnd) own.plants = [...own.plants, plant]
  void loadList(own.requested, isAtEnd ? plant.id : undefined)
}

/** Shows the delete confirmation in the plant's row. Without an id, closes the confirmation. */
function askToDelete(id?: bigint): void {
  if (id !== undefined && state.deletingIds.has(id)) return
  Object.assign(state, { pendingDeleteId: id, message: '' })
  draw()
}

async function deletePlant(plant: ListedPlant): Promise<void> {
  const own = state
  const { id, name } = plant
  Object.assign(own, { pendingDeleteId: undefined, message: '' })
  own.deletingIds.add(id)
  draw()
  try {
    await own.client.delete(id, { signal: own.controller.signal })
    const plants = own.plants.filter((other) => other.id !== id)
    Object.assign(own, { plants, isFromLink: false, message: `Deleted “${quote(name)}”.` })
  } catch (error) {
    showError(own, error, { action: 'delete', id })
  }
  own.deletingIds.delete(id)
  draw()
  if (own === state && !own.isListOutdated && own.tokenStatus === 'set') void loadList()
}

/**
 * Shows an error next to the form fields that caused it. If these fields have been edited since, or if no field caused
 * the error, shows it as a message.
 */
function showError(own: typeof state, error: unknown, write?: Write, isUnchanged = true): void {
  const { status } = error as PlantStoreError
  if (own !== state) return
  if (status === 401) return rejectToken()
  acceptToken()
  if (status === 0 || status >= 500) own.isListOutdated = true
  const { message, fieldErrors } = explainError(error as PlantStoreError, write)
  if (isUnchanged) Object.assign(own.errors, fieldErrors)
  if (write === undefined) own.listError = message
  else own.message = isUnchanged && fieldErrors !== undefined ? '' : message
}

/** Marks the given fields that have errors, and moves focus to the first one. Returns true if there are no errors. */
function validate(errors: Readonly<Record<string, string>>): boolean {
  Object.assign(state.errors, errors)
  draw()
  const [invalid] = Object.entries(errors).find(([, error]) => error !== '') ?? []
  if (invalid !== undefined) findField(invalid).focus()
  return invalid === undefined
}

/** Switches to a token that was typed or came from a link. */
function useToken(text: string, isFromLink = false): void {
  const token = parseToken(text)
  const error = findTokenError(token, isFromLink)
  if (error !== '') {
    state.isTokenFormOpen = true
    return void validate({ token: error })
  }
  // The link may come from an attacker who wants the user to create plants for the attacker's owner.
  if (isFromLink && state.token !== '' && (token === state.token || !confirm(SWITCH_QUESTION))) return
  // Ignore the second click of a double click.
  if (token === state.token && state.tokenStatus === 'unchecked') return
  replaceState(token, isFromLink)
  void loadList()
}

function replaceState(token: string, isFromLink = false): void {
  state.controller.abort(CANCELED)
  state.listController?.abort(CANCELED)
  state.listController = undefined
  state = newState(token, isFromLink)
}

/** Closes the token form after a request for which the service didn't reject the token. */
function acceptToken(): void {
  if (state.tokenStatus === 'set') return
  Object.assign(state, { tokenStatus: 'set', isTokenFormOpen: false, isTokenVisible: false })
  const hadFocus = find('#token-form').contains(document.activeElement)
  findField('token').value = ''
  draw()
  if (hadFocus) find('#plants-title').focus()
}

/** Puts the rejected token back into its field, so that the user can correct a typo. */
function rejectToken(): void {
  Object.assign(state, { tokenStatus: 'rejected', plants: [], cursors: [], pendingDeleteId: undefined })
  findField('token').value = state.token
  validate({ token: "This token isn't valid." })
  findField('token').select()
}

/** Polls the readiness until the service is ready, then reloads the list if a request failed in the meantime. */
async function watchService(isRetry = false): Promise<void> {
  readiness = await fetchReadiness(readiness)
  draw()
  if (readiness !== 'Ready' || (state.isListOutdated && !isRetry)) {
    clearTimeout(timer)
    timer = setTimeout(() => void watchService(true), RETRY_MS)
  } else if (state.isListOutdated) void loadList()
}

function setTextOf(selector: string, text: string): HTMLElement {
  return setText(find(selector), text)
}

function toggleTokenForm(): void {
  state.isTokenFormOpen = !state.isTokenFormOpen || state.tokenStatus !== 'set'
  draw()
  find(state.isTokenFormOpen ? '#token' : '#token-button').focus()
}

function forgetToken(): void {
  replaceState('')
  for (const form of document.forms) form.reset()
  draw()
  findField('token').focus()
}

find('#token-form').onsubmit = () => useToken(findField('token').value)
find('#go-to').onsubmit = () => void goToId()
find('#create').onsubmit = () => void createPlant()
find('main').oninput = ({ target }) => {
  const { id } = target as HTMLElement
  state.errors[id] = ''
  if (id === 'new-id') state.isIdTyped = true
  if (id.startsWith('new-')) state.isFormReset = false
  if (id.startsWith('new-') && !state.isCreating) state.message = ''
  draw()
}
find('#token-button').onclick = toggleTokenForm
find('#show').onclick = () => {
  state.isTokenVisible = !state.isTokenVisible
  draw()
}
for (const button of document.querySelectorAll<HTMLElement>('.forget')) button.onclick = forgetToken
find('#page-size').onchange = () => void loadList([...state.requested])
find('#next').onclick = () => state.next !== undefined && goToPage([...state.cursors, state.next])
find('#previous').onclick = () => state.cursors.length > 1 && goToPage(state.cursors.slice(0, -1))
addEventListener('keydown', ({ key }) => {
  if (key !== 'Escape') return
  if (state.pendingDeleteId !== undefined) askToDelete()
  else if (state.isTokenFormOpen && state.tokenStatus === 'set') toggleTokenForm()
})
addEventListener('submit', (event) => event.preventDefault())
addEventListener('hashchange', () => {
  const token = takeLinkToken()
  if (token !== undefined) useToken(token, true)
})
addEventListener('focus', () => void watchService())
const wide = matchMedia('(width >= 1100px)')
function toggleLog(): void {
  ;(find('#log details') as HTMLDetailsElement).open = wide.matches
}
wide.onchange = toggleLog
toggleLog()
if (linkToken === undefined) draw()
else useToken(linkToken, true)
void watchService()
