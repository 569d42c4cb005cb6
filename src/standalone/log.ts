import { inspect } from 'node:util'
import { clearTimeout, performance, setTimeout, sleep } from '../legacy/timers.ts'

/** The maximum length of the buffered log, in characters. Node buffers without a limit if nobody reads the pipe. */
const MAX_BUFFERED_LENGTH = 2 ** 20
const FLUSH_TIMEOUT_MS = 500
const THROTTLE_INTERVAL_MS = 1000
let droppedLines = 0

type Level = 'info' | 'warn' | 'error'

/** Every log event with its default level. */
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

type LogEvent = keyof typeof DEFAULT_LEVELS

/**
 * The number of times that each event was logged. Every event has an entry from the start, so that its counter starts
 * at 0.
 */
export const eventCounts: Map<LogEvent, number> = new Map<LogEvent, number>(
  Object.keys(DEFAULT_LEVELS).map((event) => [event as LogEvent, 0]),
)

/**
 * The watched settings files, keyed by the variable that names the file. The value is true if the file's latest content
 * was rejected.
 */
export const rejectedFiles: Map<string, boolean> = new Map<string, boolean>()
const pendingReports = new Set<() => void>()

/**
 * Writes an event to stderr as one line of JSON, or drops the event while the buffer is full. Fields must never contain
 * a token, a query or a request body.
 */
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

/**
 * Creates a function that counts its calls and passes the count to `report`, at most once a second and when the log is
 * flushed. Each report resets the count to 0.
 */
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

/** Resolves when all lines have been written, or after 500 ms, because the reader of the log might have stopped. */
export async function flushLog(): Promise<void> {
  for (const report of [...pendingReports]) report()
  const deadline = performance.now() + FLUSH_TIMEOUT_MS
  while (process.stderr.writableLength > 0 && performance.now() < deadline) await sleep(10)
}

/**
 * Formats the stack of an error and the stacks of its causes. Omits all other properties, because in errors from
 * database drivers they contain parts of plants.
 */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return inspect(error)
  const stack = error.stack ?? error.message
  return error.cause === undefined ? stack : `${stack}\ncaused by ${describeError(error.cause)}`
}

/** Formats the code of a system error. If a Node or Deno permission is missing, adds the flag that grants it. */
export function formatErrorCode(error: unknown): string {
  // Deno's permission errors have no code.
  const { name, code = name, message } = error as NodeJS.ErrnoException
  return [code, ...message.matchAll(/--allow-[a-z-]+/g)].join(' without ')
}

/** Returns the message of the innermost cause of an error, on one line. */
export function getRootCauseMessage(error: Error): string {
  if (error.cause instanceof Error) return getRootCauseMessage(error.cause)
  // If connecting fails for several addresses of a host, Node throws an AggregateError without a message.
  if (error instanceof AggregateError) return error.errors.map(getRootCauseMessage).join('; ')
  // OpenSSL error messages end with a line break.
  return error.message.trim().replaceAll(/\s*\n\s*/g, ' ')
}
