import type { ListedPlant, PlantStoreError } from '../client/plant-client.ts'
import { cut } from './document.ts'

/** Quotes a name in a message. Its writing direction doesn't affect the rest of the message. */
export function quote(name: string): string {
  return `“\u2068${cut(name, 20)}\u2069”`
}

export function describePage(plants: readonly ListedPlant[], after: bigint | undefined, hasMore: boolean): string {
  const [first, last] = [plants[0], plants.at(-1)]
  if (first === undefined || last === undefined)
    return after === undefined ? 'No plants yet. Add the first one above.' : `No plants with an id above ${after}.`
  const ids = first === last ? `Id ${first.id}.` : `Ids ${first.id} to ${last.id}.`
  return `${ids} ${hasMore ? 'More follow.' : 'End of the list.'}`
}

/** Explains why a list failed or, with a plant, why the plant couldn't be added or deleted. */
export function explainError(failure: PlantStoreError, plant?: ListedPlant): string {
  const { status, error, message, isOutcomeUnknown } = failure
  if (plant !== undefined && isOutcomeUnknown)
    return `The service didn't confirm the change of ${quote(plant.name)}. Check the list before you try again.`
  if (status === 0 || error === 50300)
    return `The service is unreachable. ${plant ? 'Try again later.' : 'The list loads when it is back.'}`
  return message.charAt(0).toUpperCase() + message.slice(1)
}
