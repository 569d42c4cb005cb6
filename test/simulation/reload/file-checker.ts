import type { Simulation } from '../simulation.ts'
import type { FileRead } from './simulated-file-system.ts'

/** Delay of the recheck after a check that found a change. */
const SETTLE_MS = 100

interface CheckedRead extends FileRead {
  /** When the signal that caused the read arrived; undefined for a periodic check. */
  readonly signaledAt: number | undefined
  isLogged: boolean
}

/** The value of a valid file, and the expected fields of its log line. */
interface ParsedFile {
  readonly value: AppliedValue
  readonly logFields: object
}

/** The settings in effect: the owner and access of each token, or the URL. */
export type AppliedValue = Readonly<Record<string, string>>

type ParseFile = (text: string, applied?: AppliedValue) => ParsedFile | undefined

/** A log line without its time. */
export interface LogLine {
  readonly event: string
  readonly reason?: string
}

/** Checks that a watched file is read when it should be, and that its last valid content is in effect. */
export class FileChecker {
  readonly #name: string
  readonly #world: Simulation
  readonly #parse: ParseFile
  readonly #getCurrent: () => AppliedValue
  readonly #checkIntervalMs: number
  #applied: AppliedValue
  #hadFinalNewline: boolean
  /** The content that was logged last. */
  lastLogged: string
  #previousRead: CheckedRead
  #latestRead: CheckedRead
  #signalCount = 0

  constructor(
    name: string,
    world: Simulation,
    text: string,
    parse: ParseFile,
    getCurrent: () => AppliedValue,
    checkIntervalMs: number,
  ) {
    this.#name = name
    this.#world = world
    this.#parse = parse
    this.#getCurrent = getCurrent
    this.#checkIntervalMs = checkIntervalMs
    this.#applied = parse(text)!.value
    this.#hadFinalNewline = text.endsWith('\n')
    this.lastLogged = text
    this.#previousRead = {
      signaledAt: undefined,
      isLogged: false,
      isClosed: true,
      endedAt: world.time.now,
      content: text,
    }
    this.#latestRead = this.#previousRead
  }

  get #isStable(): boolean {
    return this.#latestRead.content === this.#previousRead.content
  }

  /** When the next read is due, unless a signal arrives. */
  get #dueAt(): number {
    return (
      this.#latestRead.endedAt +
      (this.#isStable && this.#latestRead.signaledAt === undefined ? this.#checkIntervalMs : SETTLE_MS)
    )
  }

  startRead(signaledAt: number | undefined): FileRead {
    const { now } = this.#world.time
    this.#checkReadFinished()
    const dueAt = signaledAt === undefined ? this.#dueAt : Math.max(signaledAt, this.#latestRead.endedAt)
    this.#check(now === dueAt, 'a file is read when it is due', dueAt)
    this.#previousRead = this.#latestRead
    this.#latestRead = { signaledAt, isLogged: false, isClosed: false, endedAt: now, content: '' }
    if (signaledAt !== undefined) this.#signalCount++
    return this.#latestRead
  }

  #checkReadFinished(): void {
    const { signaledAt, isClosed, isLogged, content } = this.#latestRead
    this.#check(isClosed, 'reads do not overlap')
    this.#check(isLogged || signaledAt === undefined, 'every signal is logged')
    this.#check(isLogged || !this.#isStable || content === this.lastLogged, 'every change is logged')
  }

  /** Called for a log line about the latest read. */
  onLogLine({ event, reason = '', ...fields }: LogLine): void {
    const { content, signaledAt, isLogged } = this.#latestRead
    this.#check(!isLogged, 'a read is logged at most once')
    const isNew = this.#isStable && content !== this.lastLogged
    this.#check(isNew || signaledAt !== undefined, 'without a signal, a change is logged once, after two equal reads')
    this.#latestRead.isLogged = true
    this.lastLogged = content
    const parsed = this.#parse(content, this.#applied)
    const isIncomplete = this.#hadFinalNewline && !content.endsWith('\n')
    if (parsed === undefined || isIncomplete) {
      this.#check(event === `${this.#name}-kept`, 'an invalid or half-written file is rejected')
      const expectedReason =
        content === 'memory:\n'
          ? /restart to use/
          : / must |repeats the token|cannot be read|restart to use|use the form|must be|must have|unknown parameter/
      this.#check(
        (parsed === undefined ? expectedReason : /not be completely written/).test(reason),
        'the log line has the reason',
        reason,
      )
      const expectedFields = this.#name === 'tokens' ? { tokens: Object.keys(this.#applied).length } : {}
      this.#check(toJson(fields) === toJson(expectedFields), 'the log line describes the settings in effect', fields)
    } else {
      this.#check(event === `${this.#name}-read`, 'a valid file is applied')
      this.#check(toJson(fields) === toJson(parsed.logFields), 'the log line describes the changes', parsed.logFields)
      this.#applied = parsed.value
      this.#hadFinalNewline = content.endsWith('\n')
    }
    this.checkApplied()
  }

  checkApplied(): void {
    const current = this.#getCurrent()
    this.#check(toJson(current) === toJson(this.#applied), 'exactly the last valid file is in effect', current)
  }

  /** Called at the end, long after the last change. */
  checkFinalState(signalCount: number): void {
    this.checkApplied()
    this.#checkReadFinished()
    this.#check(this.#signalCount === signalCount, 'every signal causes a read')
    this.#check(this.lastLogged === this.#latestRead.content, 'the last change is logged')
    this.#check(this.#dueAt >= this.#world.time.now, 'another check is scheduled')
  }

  #check(condition: boolean, rule: string, ...details: unknown[]): void {
    this.#world.check(condition, `${rule}:`, this.#name, ...details)
  }
}

const toJson = (value: unknown): string => JSON.stringify(value)

/** Parses a token file. Returns undefined if it is invalid. */
export function parseTokens(text: string, before: AppliedValue = {}): ParsedFile | undefined {
  const tokens = new Map<string, string>()
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const [, owner, token, read] = /^(ann|bob):(t\d?)( read)? ?$/.exec(line) ?? []
    if (token === undefined || tokens.has(token)) return undefined
    tokens.set(token, `${owner} ${read === undefined ? 'write' : 'read'}`)
  }
  if (tokens.size === 0) return undefined
  const added = [...tokens.keys()].filter((token) => !(token in before)).length
  const removed = Object.keys(before).filter((token) => !tokens.has(token)).length
  const changed = [...tokens].filter(([token, caller]) => (before[token] ?? caller) !== caller).length
  return { value: Object.fromEntries([...tokens].sort()), logFields: { tokens: tokens.size, added, removed, changed } }
}

/** Parses a URL file. Returns undefined unless the URL is the initial one, except for its password. */
export function parseUrl(text: string, before?: AppliedValue): ParsedFile | undefined {
  const [, url] =
    /^(?:\xef\xbb\xbf)?(postgres:\/\/ann(?::s(?:e|%65)cret\d)?@host\/plants\?sslmode=require)(?:\r?\n)?$/.exec(text) ??
    []
  return url === undefined ? undefined : { value: { url }, logFields: { changed: url !== before?.['url'] } }
}
