import { once } from 'node:events'
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { Agent, request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'

/** A file of tokens that is changed in all the ways in which operators and their tools do it. */
export class TokenSecret {
  readonly path: string
  readonly #directory: string
  #version = 0

  /** Begins as a secret that Kubernetes mounts: the file is a link into a folder that is a link itself. */
  constructor(directory: string, content: string) {
    this.#directory = directory
    this.path = join(directory, 'tokens')
    this.swap(content)
  }

  /** As Kubernetes does: only the link to the folder changes. */
  swap(content: string): void {
    const folder = `..version${++this.#version}`
    mkdirSync(join(this.#directory, folder))
    writeFileSync(join(this.#directory, folder, 'tokens'), content)
    symlinkSync(folder, join(this.#directory, '..new'))
    renameSync(join(this.#directory, '..new'), join(this.#directory, '..data'))
    // Here another change may have taken the place of the link.
    symlinkSync('..data/tokens', `${this.path}.new`)
    renameSync(`${this.path}.new`, this.path)
  }

  /** As an editor does. */
  rename(content: string): void {
    writeFileSync(`${this.path}.new`, content)
    renameSync(`${this.path}.new`, this.path)
  }

  /** As a shell does. */
  overwrite(content: string): void {
    writeFileSync(this.path, content)
  }

  remove(): void {
    rmSync(this.path)
  }
}

interface Ask {
  readonly token: string
  readonly sentAt: number
  readonly answeredAt: number
  readonly status: number | undefined
}

/** Clients that list with tokens of their choice, so many requests a second together. */
export class RotationLoad {
  readonly asks: Ask[] = []
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 32 })
  readonly #port: number
  readonly #ended: Promise<void>
  #isStopped = false

  /** @param tokens says with which tokens to ask now */
  constructor(port: number, perSecond: number, tokens: () => readonly string[]) {
    this.#port = port
    this.#ended = this.#work(perSecond, tokens)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#ended
    this.#agent.destroy()
  }

  async #work(perSecond: number, tokens: () => readonly string[]): Promise<void> {
    const startedAt = performance.now()
    const pending = new Set<Promise<void>>()
    let sent = 0
    while (!this.#isStopped) {
      const due = ((performance.now() - startedAt) * perSecond) / 1000
      // A machine that is too slow gets no more than it can do.
      while (sent < due && pending.size < 200) {
        const now = tokens()
        const asking = this.#ask(now[sent++ % now.length]!)
        pending.add(asking)
        void asking.then(() => pending.delete(asking))
      }
      await setTimeout(1)
    }
    await Promise.all(pending)
  }

  async #ask(token: string): Promise<void> {
    const sentAt = performance.now()
    const headers = { Authorization: `Bearer ${token}` }
    const sending = request({ agent: this.#agent, host: '127.0.0.1', port: this.#port, path: '/plants', headers }).end()
    const [response] = (await once(sending, 'response')) as [IncomingMessage]
    await once(response.resume(), 'end')
    this.asks.push({ token, sentAt, answeredAt: performance.now(), status: response.statusCode })
  }
}

/** Changes of a file of tokens, one after another. */
export interface Rotation {
  /** The tokens to ask with now: some good, some removed. */
  readonly asked: readonly string[]
  readonly terms: readonly Term[]
  /** How many changes were good, and how many wrong. */
  readonly goods: number
  readonly wrongs: number
  /** Makes the next change; false if there is none. */
  next(): boolean
}

/** Changes a file so many times, in every way, and makes it wrong between some changes. Begins with `always` and `token0`. */
export function rotate(secret: TokenSecret, changes: number): Rotation {
  const terms = [
    { token: 'always', from: 0, to: Infinity },
    { token: 'token0', from: 0, to: Infinity },
  ]
  const ways: readonly ((content: string) => void)[] = [
    (content) => secret.rename(content),
    (content) => secret.overwrite(content),
    () => secret.overwrite('ada:always,bob:x'),
    () => secret.remove(),
    (content) => secret.swap(content),
    () => secret.overwrite(''),
  ]
  let [step, goods, wrongs] = [0, 0, 0]
  return {
    get asked() {
      return terms.slice(-3).map(({ token }) => token)
    },
    terms,
    get goods() {
      return goods
    },
    get wrongs() {
      return wrongs
    },
    next() {
      if (step === changes) return false
      const change = ways[step++ % ways.length]!
      if (change.length === 0) {
        wrongs++
        change('')
        return true
      }
      const token = `token${++goods}`
      change(`# rotated\nada:always\nada:${token}\n`)
      const now = performance.now()
      terms.at(-1)!.to = now
      terms.push({ token, from: now, to: Infinity })
      return true
    },
  }
}

/** When a token came to be in the file, and when it was removed. */
export interface Term {
  readonly token: string
  readonly from: number
  readonly to: number
}

/**
 * Finds the requests that were answered as they must not be.
 * @param holdsAt says from when on a change must hold
 */
export function findWrong(
  asks: readonly Ask[],
  terms: readonly Term[],
  holdsAt: (changedAt: number) => number,
): string[] {
  const termOf = new Map(terms.map((term) => [term.token, term]))
  return asks.flatMap(({ token, sentAt, answeredAt, status }) => {
    const { from, to } = termOf.get(token)!
    if (status !== 200 && status !== 401) return [`status ${status}`]
    if (status === 200 && sentAt > holdsAt(to)) return [`${token} was accepted ${sentAt - to} ms after its removal`]
    if (status === 401 && sentAt > holdsAt(from) && answeredAt < to) return [`${token} was refused`]
    return []
  })
}
