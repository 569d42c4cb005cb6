import { setTimeout } from 'node:timers/promises'
import { inspect } from 'node:util'
import { reportAllNow } from './throttle.ts'

/** How many characters of the log may wait for its reader. Node keeps what a pipe does not take. */
const MAX_WAITING = 2 ** 20

/** How long the end of the process waits for lines that are not written yet. */
const FLUSH_MS = 500

/** Lines that were dropped since the last one was written. */
let dropped = 0

/**
 * Writes one event to stderr as a line of JSON; `docs/running.md` lists the events. No field may hold a token, a query
 * or a body. If the lines are not read as fast as they are written, some are dropped, and the log says how many.
 */
export function log(event: string, fields: object): void {
  const { stderr } = process
  if (stderr.writableLength > MAX_WAITING) {
    if (dropped++ === 0) stderr.once('drain', reportDropped)
  } else {
    stderr.write(`${JSON.stringify({ time: new Date().toISOString(), event, ...fields })}\n`)
  }
}

function reportDropped(): void {
  const lines = dropped
  dropped = 0
  log('dropped', { lines })
}

/** Settles once all lines are written, or have waited too long: their reader may have stopped. */
export async function flushLog(): Promise<void> {
  reportAllNow()
  const deadline = performance.now() + FLUSH_MS
  while (process.stderr.writableLength > 0 && performance.now() < deadline) await setTimeout(10)
}

/**
 * Describes a thrown value for the log: the stacks of an error and of its causes. It leaves out their other members,
 * which in errors of a database driver hold pieces of plants.
 */
export function describeError(thrown: unknown): string {
  if (!(thrown instanceof Error)) return inspect(thrown)
  const stack = thrown.stack ?? thrown.message
  return thrown.cause === undefined ? stack : `${stack}\ncaused by ${describeError(thrown.cause)}`
}
