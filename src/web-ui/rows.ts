import type { ListedPlant } from '../client/plant-client.ts'
import { cloneTemplate, find, setText } from './document.ts'
import { quote } from './messages.ts'

/** The rows on display, keyed by their plant. A row that stays keeps its question and its focus. */
let rows = new Map<string, HTMLElement>()

/** @param onDelete called when the user has confirmed a delete */
export function drawRows(plants: readonly ListedPlant[], onDelete: (plant: ListedPlant) => Promise<void>): void {
  const list = find('#list')
  const focusedIndex = Array.from(list.children).findIndex((row) => row.contains(document.activeElement))
  const entries = plants.map((plant) => {
    const key = [plant.id, plant.name, plant.tag ?? ''].join('\0')
    return [key, rows.get(key) ?? createRow(plant, onDelete)] as const
  })
  const shown = new Map(entries)
  for (const [key, row] of rows) if (!shown.has(key)) row.remove()
  rows = shown
  for (const [index, [, row]] of entries.entries()) {
    if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null)
  }
  // Move the focus to the next row, so that keyboard users can continue after a delete.
  if (focusedIndex === -1 || list.contains(document.activeElement)) return
  const [, row] = entries[focusedIndex] ?? entries.at(-1) ?? []
  find(row === undefined ? '#new-name' : 'summary', row).focus()
}

function createRow(plant: ListedPlant, onDelete: (plant: ListedPlant) => Promise<void>): HTMLElement {
  const row = cloneTemplate('plant')
  find('.id', row).textContent = String(plant.id)
  const texts = [setText(find('.name', row), plant.name), setText(find('.tag', row), plant.tag ?? '')]
  // A text that is so long that it scrolls must be accessible by keyboard.
  for (const element of texts) if (element.textContent.length > 80) element.tabIndex = 0
  const question = find('details', row) as HTMLDetailsElement
  const [ask, confirm] = [find('summary', question), find('button', question) as HTMLButtonElement]
  const label = `Delete plant ${plant.id}, ${quote(plant.name)}`
  ask.ariaLabel = confirm.ariaLabel = label
  question.ontoggle = () => (setText(ask, question.open ? 'Cancel' : 'Delete').ariaLabel = question.open ? null : label)
  confirm.onclick = async () => {
    ask.focus()
    question.open = false
    confirm.disabled = true
    await onDelete(plant)
    confirm.disabled = false
  }
  return row
}
