import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'

/** The maximum length of the buffered log, in characters. Node buffers without a limit if nobody reads the pipe. */
const MAX_BUFFERED_LENGTH = 2 ** 20
const FLUSH_TIMEOUT_MS = 500
const THROTTLE_INTERVAL_MS = 1000
let droppedLines = 0

type Level = 'info' | 'warn' | 'error'

/** Every log event with its default level. */
const LEVELS = {
  start: 'info',
  response: 'info',
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
  'connections-dropped': 'warn',
  dropped: 'warn',
  'drain-delay': 'info',
  drain: 'info',
  stop: 'info',
  crash: 'error',
} as const satisfies Record<string, Level>

export type LogEvent = keyof typeof LEVELS

/** The logs that have counted events since their last line. */
const pendingLogs = new Set<() => void>()

/**
 * Writes an event to stderr as one line of JSON, or drops the event while the buffer is full. Fields must never contain
 * a token, a query or a request body.
 */
export function log(event: LogEvent, fields: object = {}, level: Level = LEVELS[event]): void {
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
 * Creates a function that logs an event at most once a second: with the fields of its latest call, and the number of
 * calls since the previous line.
 */
export function createThrottledLog(event: LogEvent): (getFields: () => object) => void {
  let count = 0
  let getLatestFields: () => object
  let timer: NodeJS.Timeout | undefined

  function write(): void {
    pendingLogs.delete(write)
    timer = setTimeout(() => {
      timer = undefined
      if (count > 0) write()
    }, THROTTLE_INTERVAL_MS).unref()
    log(event, { ...getLatestFields(), count })
    count = 0
  }
  return (getFields) => {
    count++
    getLatestFields = getFields
    pendingLogs.add(write)
    if (timer === undefined) write()
  }
}

/** Resolves when all lines have been written, or after 500 ms, because the reader of the log might have stopped. */
export async function flushLog(): Promise<void> {
  for (const write of [...pendingLogs]) write()
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

/** Formats the code of a system error. If `--permission` denies the access, adds the permission and the resource. */
export function describeSystemError(error: unknown): string {
  const { code, permission, resource } = error as NodeJS.ErrnoException & { permission?: string; resource?: string }
  return permission === undefined ? String(code) : `${code}: --permission denies ${permission} for ${resource}`
}

/** Returns the message of the innermost cause of an error, on one line. */
export function getRootCauseMessage(error: Error): string {
  if (error.cause instanceof Error) return getRootCauseMessage(error.cause)
  if ('permission' in error) return describeSystemError(error)
  // If connecting fails for several addresses of a host, Node throws an AggregateError without a message.
  if (error instanceof AggregateError) return error.errors.map(getRootCauseMessage).join('; ')
  // OpenSSL error messages end with a line break.
  return error.message.trim().replaceAll(/\s*\n\s*/g, ' ')
}
