import type { World } from '../simulation.ts'
import type { Look } from './files.ts'

/** How soon a second look must follow one that found a change. */
const SETTLE_MS = 100

interface FollowedLook extends Look {
  /** When someone told of a change; undefined if nobody did. */
  readonly toldAt: number | undefined
  hasLine: boolean
}

/** What a good text means, and what the log says of it. */
interface Meaning {
  readonly held: Held
  readonly fields: object
}

/** What holds: the owner and the access of each token, or the URL. */
export type Held = Readonly<Record<string, string>>

type Read = (text: string, held?: Held) => Meaning | undefined

/** A line of the log, without its time. */
export interface LogLine {
  readonly event: string
  readonly reason?: string
}

/** A file that is followed: what was found in it, and what therefore holds. */
export class Followed {
  readonly #name: string
  readonly #world: World
  readonly #read: Read
  readonly #current: () => Held
  readonly #lookMs: number
  #held: Held
  #endedLine: boolean
  /** What the log has told of last. */
  told: string
  #before: FollowedLook
  #look: FollowedLook
  #signals = 0

  constructor(name: string, world: World, text: string, read: Read, current: () => Held, lookMs: number) {
    this.#name = name
    this.#world = world
    this.#read = read
    this.#current = current
    this.#lookMs = lookMs
    this.#held = read(text)!.held
    this.#endedLine = text.endsWith('\n')
    this.told = text
    this.#before = { toldAt: undefined, hasLine: false, isOver: true, endedAt: world.time.now, found: text }
    this.#look = this.#before
  }

  get #isSettled(): boolean {
    return this.#look.found === this.#before.found
  }

  /** When the next look must be, unless someone tells of a change. */
  get #dueAt(): number {
    return this.#look.endedAt + (this.#isSettled && this.#look.toldAt === undefined ? this.#lookMs : SETTLE_MS)
  }

  beginLook(toldAt: number | undefined): Look {
    const { now } = this.#world.time
    this.#endLook()
    const dueAt = toldAt === undefined ? this.#dueAt : Math.max(toldAt, this.#look.endedAt)
    this.#expect(now === dueAt, 'a file is looked at when it should be', dueAt)
    this.#before = this.#look
    this.#look = { toldAt, hasLine: false, isOver: false, endedAt: now, found: '' }
    if (toldAt !== undefined) this.#signals++
    return this.#look
  }

  #endLook(): void {
    const { toldAt, isOver, hasLine, found } = this.#look
    this.#expect(isOver, 'there is one look at a time')
    this.#expect(hasLine || toldAt === undefined, 'each signal has its line')
    this.#expect(hasLine || !this.#isSettled || found === this.told, 'each change has its line')
  }

  /** A line of the log speaks of the latest look. */
  hear({ event, reason = '', ...fields }: LogLine): void {
    const { found, toldAt, hasLine } = this.#look
    this.#expect(!hasLine, 'a look has one line at most')
    const isNew = this.#isSettled && found !== this.told
    this.#expect(isNew || toldAt !== undefined, 'a change that nobody told of is believed if found twice, and once')
    this.#look.hasLine = true
    this.told = found
    const meaning = this.#read(found, this.#held)
    const isHalf = this.#endedLine && !found.endsWith('\n')
    if (meaning === undefined || isHalf) {
      this.#expect(event === `${this.#name}-kept`, 'a file that is wrong or half written is not taken')
      const why = found === 'memory:\n' ? /takes a restart/ : /takes |^unknown parameter/
      this.#expect((meaning === undefined ? why : /half written/).test(reason), 'the log says why', reason)
      const count = this.#name === 'tokens' ? { tokens: Object.keys(this.#held).length } : {}
      this.#expect(show(fields) === show(count), 'the log says what holds', fields)
    } else {
      this.#expect(event === `${this.#name}-read`, 'a good file is taken')
      this.#expect(show(fields) === show(meaning.fields), 'the log says what has changed', meaning.fields)
      this.#held = meaning.held
      this.#endedLine = found.endsWith('\n')
    }
    this.expectHeld()
  }

  expectHeld(): void {
    const held = this.#current()
    this.#expect(show(held) === show(this.#held), 'what holds is all of the last good file, and no more', held)
  }

  /** All has been quiet for long. */
  end(signals: number): void {
    this.expectHeld()
    this.#endLook()
    this.#expect(this.#signals === signals, 'each signal has its look')
    this.#expect(this.told === this.#look.found, 'the last change has its line')
    this.#expect(this.#dueAt >= this.#world.time.now, 'the file is looked at again')
  }

  #expect(isSo: boolean, rule: string, ...words: unknown[]): void {
    this.#world.expect(isSo, `${rule}:`, this.#name, ...words)
  }
}

const show = (value: unknown): string => JSON.stringify(value)

/** Reads tokens, in their order. */
export function readTokens(text: string, before: Held = {}): Meaning | undefined {
  const found = new Map<string, string>()
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const [, owner, token, read] = /^(ann|bob):(t\d?)( read)? ?$/.exec(line) ?? []
    if (token === undefined || found.has(token)) return undefined
    found.set(token, `${owner} ${read === undefined ? 'write' : 'read'}`)
  }
  if (found.size === 0) return undefined
  const added = [...found.keys()].filter((token) => !(token in before)).length
  const removed = Object.keys(before).filter((token) => !found.has(token)).length
  const changed = [...found].filter(([token, caller]) => (before[token] ?? caller) !== caller).length
  return { held: Object.fromEntries([...found].sort()), fields: { tokens: found.size, added, removed, changed } }
}

/** Reads a URL that differs from the one before in its password at most. */
export function readUrl(text: string, before?: Held): Meaning | undefined {
  const [, url] =
    /^(?:\xef\xbb\xbf)?(postgres:\/\/ann(?::s(?:e|%65)cret\d)?@host\/plants\?sslmode=require)(?:\r?\n)?$/.exec(text) ??
    []
  return url === undefined ? undefined : { held: { url }, fields: { changed: url !== before?.['url'] } }
}
