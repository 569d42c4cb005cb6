import type { ListedPlant, PlantStoreError } from '../../../../client/plant-client.ts'
import { quote } from './document.ts'

/** A failed write: its kind, and the id of its plant. */
export type Write = Readonly<{ action: 'add' | 'delete'; id: bigint }>

export const MAX_ID: bigint = 2n ** 63n - 1n

/** Returns the validation error for an id, or an empty string. */
export function findIdError(text: string): string {
  if (text === '') return 'Id is required.'
  const isInt64 = /^-?(?:0|[1-9]\d{0,18})$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text)
  return isInt64 ? '' : `Id must be a whole number from ${-MAX_ID - 1n} to ${MAX_ID}.`
}

export function describeRange(plants: readonly ListedPlant[], next: bigint | undefined): string {
  if (plants.length === 0) return ''
  const [first, last] = [plants[0]!, plants.at(-1)!].map(({ id }) => quote(id))
  const ids = first === last ? `Id ${first}.` : `Ids ${first} to ${last}.`
  return `${ids} ${next === undefined ? 'End of the list.' : 'More follow.'}`
}

export function describeEmptyPage(after: bigint | undefined): string {
  return after === undefined ? 'No plants yet. Add the first one above.' : `No plants with an id above ${quote(after)}.`
}

/**
 * Returns a message that explains a client error. If form fields caused the error, also returns a message for each of
 * these fields.
 */
export function explainError(
  { status, error, message, isOutcomeUnknown }: PlantStoreError,
  write?: Write,
): Readonly<{ message: string; fieldErrors?: Readonly<Record<string, string>> }> {
  if (write !== undefined && isOutcomeUnknown) {
    const action = write.action === 'add' ? 'added' : 'deleted'
    const doubt = `The service didn't confirm this, so the plant may or may not have been ${action}.`
    return { message: `${doubt} Check the list before you try again.` }
  }
  if (status === 0 || error === 50300) {
    const advice = write === undefined ? 'The list loads' : 'Try again'
    return { message: `The service is unreachable. ${advice} when the service is back.` }
  }
  if (error === 40300) return { message: 'This token can only list plants.' }
  if (write !== undefined && error === 40401) return { message: `Plant ${quote(write.id)} doesn't exist anymore.` }
  const fieldErrors: Record<string, string> = {}
  if (write !== undefined && error === 40900) fieldErrors['new-id'] = `Plant ${quote(write.id)} already exists.`
  if (error === 40002) {
    for (const [rule, member] of message.matchAll(/\b(name|tag) (?:contains|is|must) [^;]*/g)) {
      fieldErrors[`new-${member!}`] = capitalize(rule)
    }
  }
  const texts = Object.values(fieldErrors)
  return texts.length === 0 ? { message: capitalize(message) } : { message: texts.join(' '), fieldErrors }
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
