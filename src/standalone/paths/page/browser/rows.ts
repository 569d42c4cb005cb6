import type { ListedPlant } from '../../../../client/plant-client.ts'
import { cloneTemplate, createText, find, quote, replaceChildren, setText } from './document.ts'

type RowState = Readonly<{
  plants: readonly ListedPlant[]
  pendingDeleteId: bigint | undefined
  deletingIds: ReadonlySet<bigint>
}>

interface RowActions {
  /** Asks the user to confirm a delete. Without an id, closes the confirmation. */
  readonly ask: (id?: bigint) => void
  readonly delete: (plant: ListedPlant) => void
}

/** The rows, keyed by the JSON of their plant. Reusing a row keeps it expanded and focused. */
let rows = new Map<string, HTMLElement>()

export function drawRows({ plants, pendingDeleteId, deletingIds }: RowState, actions: RowActions): void {
  const body = find('tbody')
  const focused = Array.from(body.children).findIndex((row) => row.contains(document.activeElement))
  const keys = plants.map(({ id, name, tag }) => JSON.stringify([String(id), name, tag]))
  const shown = plants.map((plant, index) => rows.get(keys[index]!) ?? createRow(plant, actions))
  rows = new Map(shown.map((row, index) => [keys[index]!, row]))
  replaceChildren(body, shown)
  for (const [index, row] of shown.entries()) {
    const { id, name } = plants[index]!
    const question = find('.question', row)
    const hadFocus = question.contains(document.activeElement)
    question.hidden = id !== pendingDeleteId
    const isDeleting = deletingIds.has(id)
    const button = setText(find('button', row), isDeleting ? 'Deleting …' : 'Delete')
    button.ariaDisabled = String(isDeleting)
    button.ariaLabel = `Delete plant ${id}, ${quote(name)}`
    question.ariaLabel = `${button.ariaLabel}? This can't be undone.`
    if (hadFocus && question.hidden) button.focus()
  }
  // Move the focus to the next row, so that keyboard users can continue after a delete.
  if (focused === -1 || body.contains(document.activeElement)) return
  const row = shown[Math.min(focused, shown.length - 1)]
  find(row === undefined ? '#new-name' : 'button', row).focus()
}

function createRow(plant: ListedPlant, actions: RowActions): HTMLElement {
  const row = cloneTemplate('#plant')
  find('.id', row).textContent = String(plant.id)
  find('.name', row).append(createText(plant.name))
  if (plant.tag !== undefined) find('.tag', row).append(createText(plant.tag))
  const [ask, cancel, confirm] = row.querySelectorAll('button')
  ask!.onclick = () => {
    actions.ask(plant.id)
    cancel!.focus()
  }
  cancel!.onclick = ({ detail }) => {
    // Ignore the second click of a double click on Delete: the Cancel button has taken its place.
    if (detail < 2) actions.ask()
  }
  confirm!.onclick = () => actions.delete(plant)
  return row
}
