import type { Simulation } from '../simulation.ts'
import type { FileRead } from './simulated-file-system.ts'

/** How soon a second look must follow one that found a change. */
const SETTLE_MS = 100

interface CheckedRead extends FileRead {
  /** When someone told of a change; undefined if nobody did. */
  readonly signalledAt: number | undefined
  isLogged: boolean
}

/** What a good text means, and what the log says of it. */
interface ParsedFile {
  readonly value: AppliedValue
  readonly logFields: object
}

/** What holds: the owner and the access of each token, or the URL. */
export type AppliedValue = Readonly<Record<string, string>>

type ParseFile = (text: string, applied?: AppliedValue) => ParsedFile | undefined

/** A line of the log, without its time. */
export interface LogLine {
  readonly event: string
  readonly reason?: string
}

/** A file that is followed: what was found in it, and what therefore holds. */
export class FileChecker {
  readonly #name: string
  readonly #world: Simulation
  readonly #parse: ParseFile
  readonly #getCurrent: () => AppliedValue
  readonly #checkIntervalMs: number
  #applied: AppliedValue
  #hadFinalNewline: boolean
  /** What the log has told of last. */
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
      signalledAt: undefined,
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

  /** When the next look must be, unless someone tells of a change. */
  get #dueAt(): number {
    return (
      this.#latestRead.endedAt +
      (this.#isStable && this.#latestRead.signalledAt === undefined ? this.#checkIntervalMs : SETTLE_MS)
    )
  }

  startRead(signalledAt: number | undefined): FileRead {
    const { now } = this.#world.time
    this.#checkReadFinished()
    const dueAt = signalledAt === undefined ? this.#dueAt : Math.max(signalledAt, this.#latestRead.endedAt)
    this.#check(now === dueAt, 'a file is looked at when it should be', dueAt)
    this.#previousRead = this.#latestRead
    this.#latestRead = { signalledAt, isLogged: false, isClosed: false, endedAt: now, content: '' }
    if (signalledAt !== undefined) this.#signalCount++
    return this.#latestRead
  }

  #checkReadFinished(): void {
    const { signalledAt: toldAt, isClosed: isOver, isLogged: hasLine, content: found } = this.#latestRead
    this.#check(isOver, 'there is one look at a time')
    this.#check(hasLine || toldAt === undefined, 'each signal has its line')
    this.#check(hasLine || !this.#isStable || found === this.lastLogged, 'each change has its line')
  }

  /** A line of the log speaks of the latest look. */
  onLogLine({ event, reason = '', ...fields }: LogLine): void {
    const { content: found, signalledAt: toldAt, isLogged: hasLine } = this.#latestRead
    this.#check(!hasLine, 'a look has one line at most')
    const isNew = this.#isStable && found !== this.lastLogged
    this.#check(isNew || toldAt !== undefined, 'a change that nobody told of is believed if found twice, and once')
    this.#latestRead.isLogged = true
    this.lastLogged = found
    const parsed = this.#parse(found, this.#applied)
    const isIncomplete = this.#hadFinalNewline && !found.endsWith('\n')
    if (parsed === undefined || isIncomplete) {
      this.#check(event === `${this.#name}-kept`, 'a file that is wrong or half written is not taken')
      const expectedReason =
        found === 'memory:\n' ? /takes a restart/ : /takes |^use the form|must be|must have|^unknown parameter/
      this.#check((parsed === undefined ? expectedReason : /half written/).test(reason), 'the log says why', reason)
      const expectedFields = this.#name === 'tokens' ? { tokens: Object.keys(this.#applied).length } : {}
      this.#check(toJson(fields) === toJson(expectedFields), 'the log says what holds', fields)
    } else {
      this.#check(event === `${this.#name}-read`, 'a good file is taken')
      this.#check(toJson(fields) === toJson(parsed.logFields), 'the log says what has changed', parsed.logFields)
      this.#applied = parsed.value
      this.#hadFinalNewline = found.endsWith('\n')
    }
    this.checkApplied()
  }

  checkApplied(): void {
    const current = this.#getCurrent()
    this.#check(
      toJson(current) === toJson(this.#applied),
      'what holds is all of the last good file, and no more',
      current,
    )
  }

  /** All has been quiet for long. */
  checkFinalState(signalCount: number): void {
    this.checkApplied()
    this.#checkReadFinished()
    this.#check(this.#signalCount === signalCount, 'each signal has its look')
    this.#check(this.lastLogged === this.#latestRead.content, 'the last change has its line')
    this.#check(this.#dueAt >= this.#world.time.now, 'the file is looked at again')
  }

  #check(condition: boolean, rule: string, ...details: unknown[]): void {
    this.#world.check(condition, `${rule}:`, this.#name, ...details)
  }
}

const toJson = (value: unknown): string => JSON.stringify(value)

/** Reads tokens, in their order. */
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

/** Reads a URL that differs from the one before in its password at most. */
export function parseUrl(text: string, before?: AppliedValue): ParsedFile | undefined {
  const [, url] =
    /^(?:\xef\xbb\xbf)?(postgres:\/\/ann(?::s(?:e|%65)cret\d)?@host\/plants\?sslmode=require)(?:\r?\n)?$/.exec(text) ??
    []
  return url === undefined ? undefined : { value: { url }, logFields: { changed: url !== before?.['url'] } }
}
