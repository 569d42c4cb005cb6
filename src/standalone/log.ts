import { inspect } from 'node:util'
import { clearTimeout, performance, setTimeout, sleep } from '../timers.ts'

/** How many characters of the log may wait for its reader. Node keeps what a pipe does not take. */
const MAX_WAITING = 2 ** 20
const FLUSH_MS = 500
const INTERVAL_MS = 1000
let dropped = 0

export type Level = 'info' | 'warn' | 'error'

/** Every event of the log with its usual level. */
const LEVELS = {
  start: 'info',
  response: 'info',
  slow: 'warn',
  refused: 'info',
  failure: 'error',
  'tokens-read': 'info',
  'tokens-kept': 'warn',
  'store-url-read': 'info',
  'store-url-kept': 'warn',
  unready: 'error',
  ready: 'info',
  disconnected: 'warn',
  unreachable: 'error',
  warning: 'warn',
  guard: 'warn',
  'connections-dropped': 'warn',
  dropped: 'warn',
  'drain-delay': 'info',
  drain: 'info',
  stop: 'info',
  crash: 'error',
} as const

export type LogEvent = keyof typeof LEVELS

/** How often each event was logged. Every event has an entry from the start, so that its counter starts at 0. */
export const eventCounts: Map<LogEvent, number> = new Map<LogEvent, number>(
  Object.keys(LEVELS).map((event) => [event as LogEvent, 0]),
)

/** The settings files that are followed, by variable, and whether the latest content was rejected. */
export const rejectedFiles: Map<string, boolean> = new Map<string, boolean>()
const waitingReports = new Set<() => void>()

/** Writes an event to stderr as a line of JSON; no field may hold a token, query or body. Drops lines if nobody reads. */
export function log(event: LogEvent, fields: object, level: Level = LEVELS[event]): void {
  eventCounts.set(event, eventCounts.get(event)! + 1)
  const { stderr } = process
  if (stderr.writableLength > MAX_WAITING) {
    if (dropped++ === 0) stderr.once('drain', reportDropped)
  } else {
    stderr.write(`${JSON.stringify({ time: new Date().toISOString(), level, event, ...fields })}\n`)
  }
}

function reportDropped(): void {
  const lines = dropped
  dropped = 0
  log('dropped', { lines })
}

/** Makes a function that counts its calls, and reports how many there were: at most once a second, and at the end. */
export function throttle(report: (count: number) => void): () => void {
  let count = 0
  let timer: NodeJS.Timeout | undefined

  function reportNow(): void {
    waitingReports.delete(reportNow)
    clearTimeout(timer)
    timer = setTimeout(() => {
      timer = undefined
      if (count > 0) reportNow()
    }, INTERVAL_MS).unref()
    const counted = count
    count = 0
    report(counted)
  }
  return () => {
    count++
    if (timer === undefined) reportNow()
    else waitingReports.add(reportNow)
  }
}

/** Settles once all lines are written, or have waited too long: their reader may have stopped. */
export async function flushLog(): Promise<void> {
  for (const report of [...waitingReports]) report()
  const deadline = performance.now() + FLUSH_MS
  while (process.stderr.writableLength > 0 && performance.now() < deadline) await sleep(10)
}

/** The stacks of an error and of its causes. Other members are left out: those of a driver's hold pieces of plants. */
export function describeError(thrown: unknown): string {
  if (!(thrown instanceof Error)) return inspect(thrown)
  const stack = thrown.stack ?? thrown.message
  return thrown.cause === undefined ? stack : `${stack}\ncaused by ${describeError(thrown.cause)}`
}

/** Why the system, or Node under `--permission`, did not do something: a code, and the flag that is missing. */
export function codeOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return [code, ...message.matchAll(/--allow-[a-z-]+/g)].join(' without ')
}

/** Says in one line why something failed: the message of its first cause. */
export function firstReason(error: Error): string {
  if (error.cause instanceof Error) return firstReason(error.cause)
  // A host with two addresses has failed twice, and Node gives no message to both.
  if (error instanceof AggregateError) return error.errors.map(firstReason).join('; ')
  // Messages of OpenSSL end with a line break.
  return error.message.trim().replaceAll(/\s*\n\s*/g, ' ')
}
