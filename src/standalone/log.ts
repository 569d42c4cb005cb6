import { inspect } from 'node:util'

/**
 * Writes one event to stderr as a line of JSON. Whoever calls it gives no token, no query and no body.
 */
export function log(event: string, fields: object): void {
  process.stderr.write(`${JSON.stringify({ time: new Date().toISOString(), event, ...fields })}\n`)
}

/**
 * What a log may show of a thrown value: the stacks of an error and of its causes. Its other members stay
 * out, since those of a database driver's errors hold pieces of the plants.
 */
export function describeError(thrown: unknown): string {
  if (!(thrown instanceof Error)) return inspect(thrown)
  const stack = thrown.stack ?? thrown.message
  return thrown.cause === undefined ? stack : `${stack}\ncaused by ${describeError(thrown.cause)}`
}
