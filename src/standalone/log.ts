import { inspect } from 'node:util'
import { clearTimeout, performance, setTimeout, sleep } from '../timers.ts'

/** How many characters of the log may wait for its reader. Node keeps what a pipe does not take. */
const MAX_BUFFERED_LENGTH = 2 ** 20
const FLUSH_TIMEOUT_MS = 500
const THROTTLE_INTERVAL_MS = 1000
let droppedLines = 0

export type Level = 'info' | 'warn' | 'error'

/** Every event of the log with its usual level. */
const DEFAULT_LEVELS = {
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

export type LogEvent = keyof typeof DEFAULT_LEVELS

/** How often each event was logged. Every event has an entry from the start, so that its counter starts at 0. */
export const eventCounts: Map<LogEvent, number> = new Map<LogEvent, number>(
  Object.keys(DEFAULT_LEVELS).map((event) => [event as LogEvent, 0]),
)

/** The settings files that are followed, by variable, and whether the latest content was rejected. */
export const rejectedFiles: Map<string, boolean> = new Map<string, boolean>()
const pendingReports = new Set<() => void>()

/** Writes an event to stderr as a line of JSON; no field may hold a token, query or body. Drops lines if nobody reads. */
export function log(event: LogEvent, fields: object, level: Level = DEFAULT_LEVELS[event]): void {
  eventCounts.set(event, eventCounts.get(event)! + 1)
  const { stderr } = process
  if (stderr.writableLength > MAX_BUFFERED_LENGTH) {
    if (droppedLines++ === 0) stderr.once('drain', reportDropped)
  } else {
    stderr.write(`${JSON.stringify({ time: new Date().toISOString(), level, event, ...fields })}\n`)
  }
}

function reportDropped(): void {
  const lines = droppedLines
  droppedLines = 0
  log('dropped', { lines })
}

/** Makes a function that counts its calls, and reports how many there were: at most once a second, and at the end. */
export function throttle(report: (count: number) => void): () => void {
  let count = 0
  let timer: NodeJS.Timeout | undefined

  function reportNow(): void {
    pendingReports.delete(reportNow)
    clearTimeout(timer)
    timer = setTimeout(() => {
      timer = undefined
      if (count > 0) reportNow()
    }, THROTTLE_INTERVAL_MS).unref()
    const reportedCount = count
    count = 0
    report(reportedCount)
  }
  return () => {
    count++
    if (timer === undefined) reportNow()
    else pendingReports.add(reportNow)
  }
}

/** Settles once all lines are written, or have waited too long: their reader may have stopped. */
export async function flushLog(): Promise<void> {
  for (const report of [...pendingReports]) report()
  const deadline = performance.now() + FLUSH_TIMEOUT_MS
  while (process.stderr.writableLength > 0 && performance.now() < deadline) await sleep(10)
}

/** The stacks of an error and of its causes. Other members are left out: those of a driver's hold pieces of plants. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return inspect(error)
  const stack = error.stack ?? error.message
  return error.cause === undefined ? stack : `${stack}\ncaused by ${describeError(error.cause)}`
}

/** Why the system, or Node under `--permission`, did not do something: a code, and the flag that is missing. */
export function formatErrorCode(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return [code, ...message.matchAll(/--allow-[a-z-]+/g)].join(' without ')
}

/** Says in one line why something failed: the message of its first cause. */
export function getRootCauseMessage(error: Error): string {
  if (error.cause instanceof Error) return getRootCauseMessage(error.cause)
  // A host with two addresses has failed twice, and Node gives no message to both.
  if (error instanceof AggregateError) return error.errors.map(getRootCauseMessage).join('; ')
  // Messages of OpenSSL end with a line break.
  return error.message.trim().replaceAll(/\s*\n\s*/g, ' ')
}
