import { find, setText } from './document.ts'
import { describePage, explainError } from './messages.ts'
import { drawRows } from './rows.ts'
import { Session } from './session.ts'
import { parseToken, readSavedToken, saveToken, takeLinkToken } from './token.ts'

const SWITCH_QUESTION = 'The link contains another token. Switch to it? Cancel unless you trust the link.'
const TOKEN_RULE = 'A token contains only letters, digits and -._~+/, and can end with "=".'

const tokenPanel = find('#token-panel') as HTMLDetailsElement
const addForm = find('#add') as HTMLFormElement
const tokenField = find('#token') as HTMLInputElement
const idField = find('#new-id') as HTMLInputElement
const nameField = find('#new-name') as HTMLInputElement
const tagField = find('#new-tag') as HTMLInputElement
/** The session of the token in use. Undefined without a token, and after the service has rejected it. */
let session: Session | undefined

/** Shows the state of the session. Of what the user has typed, it changes nothing. */
function draw(): void {
  const { page, listError, message = '', isUnreachable = false, isAdding = false } = session ?? {}
  const { plants = [], cursors = [], next } = page ?? {}
  const isAccepted = page !== undefined || listError !== undefined
  setText(find('#service'), isUnreachable ? 'Unreachable – retrying' : page === undefined ? '' : 'Ready')
  setText(find('#token-title'), isAccepted ? 'Token set' : 'Enter token')
  setText(find('#message'), `${message} ${listError === undefined ? '' : explainError(listError)}`.trim())
  drawRows(plants, (plant) => session!.delete(plant))
  const range = session?.isLoading ? 'Loading …' : describePage(plants, cursors.at(-1), next !== undefined)
  setText(find('#range'), range)
  // A button with the `disabled` attribute would lose the focus.
  find('#next').ariaDisabled = String(next === undefined)
  find('#previous').ariaDisabled = String(cursors.length < 2)
  find('#add button').ariaDisabled = String(isAdding)
  // Suggest an id, unless the user has typed one.
  if (!isAdding && idField.value === (idField.dataset['suggestion'] ?? '')) {
    idField.value = idField.dataset['suggestion'] = String(session?.suggestedId ?? '')
  }
  const wasAccepted = !find('#plants').hidden
  find('#plants').hidden = !isAccepted
  if (isAccepted && !wasAccepted) closeTokenPanel(session!.token)
}

/** Uses a token that was typed, pasted or in a link. */
function useToken(text: string): void {
  const token = parseToken(text)
  if (token === undefined) setText(find('#token-message'), TOKEN_RULE)
  else startSession(token)
}

function startSession(token: string): void {
  session?.end()
  saveToken(token)
  find('#requests').replaceChildren()
  setText(find('#token-message'), 'Checking …')
  session = new Session(token, draw, askForToken)
  void session.load()
}

function askForToken(): void {
  session = undefined
  saveToken()
  draw()
  setText(find('#token-message'), "This token isn't valid.")
  tokenPanel.open = true
  tokenField.focus()
}

/** Closes the token form after its token has been accepted, unless the user is already typing another one. */
function closeTokenPanel(token: string): void {
  setText(find('#token-message'), '')
  if (tokenField.value !== '' && parseToken(tokenField.value) !== token) return
  const hadFocus = tokenPanel.contains(document.activeElement)
  tokenField.value = ''
  tokenPanel.open = false
  if (hadFocus) find('#plants-title').focus()
}

function addPlant(): void {
  if (session!.isAdding) return
  const readFields = (): string[] => [idField.value, nameField.value, tagField.value]
  const fields = readFields()
  const [idText, name, tag] = fields as [string, string, string]
  void session!.add({ id: BigInt(idText), name, ...(tag !== '' && { tag }) }, (error) => {
    // Keep what the user has typed in the meantime.
    if (readFields().join('\0') !== fields.join('\0')) return
    if (error === undefined) {
      addForm.reset()
      if (addForm.contains(document.activeElement)) nameField.focus()
    }
    if (error === undefined || error.error === 40900) idField.dataset['suggestion'] = idField.value
  })
}

addEventListener('submit', (event) => event.preventDefault())
find('#token-form').onsubmit = () => useToken(tokenField.value)
find('#go-to').onsubmit = () => {
  const { value } = find('#go-to-id') as HTMLInputElement
  void session!.goToId(value === '' ? undefined : BigInt(value))
}
addForm.onsubmit = addPlant
// The second click of a double click may find an empty form.
find('#add button').onclick = (event) => {
  if (event.detail > 1) event.preventDefault()
}
find('#forget').onclick = () => {
  saveToken()
  location.reload()
}
find('#reload').onclick = () => void session!.load()
find('#next').onclick = () => {
  const { cursors = [], next } = session!.page ?? {}
  if (next !== undefined) void session!.goToPage([...cursors, next])
}
find('#previous').onclick = () => {
  const { cursors = [] } = session!.page ?? {}
  if (cursors.length > 1) void session!.goToPage(cursors.slice(0, -1))
}
addEventListener('focus', () => void session?.load())
// A link with a token was followed in this tab.
addEventListener('hashchange', () => location.reload())

const linkToken = takeLinkToken()
const savedToken = readSavedToken()
draw()
if (linkToken !== undefined && linkToken !== savedToken && (savedToken === '' || confirm(SWITCH_QUESTION))) {
  useToken(linkToken)
} else if (savedToken !== '') startSession(savedToken)
