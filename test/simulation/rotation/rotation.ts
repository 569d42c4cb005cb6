import { AsyncLocalStorage } from 'node:async_hooks'
import fsPromises from 'node:fs/promises'
import { createTokenSource, followStoreUrl } from '../../../src/standalone/settings/rotation.ts'
import type { SettingFile } from '../../../src/standalone/settings/setting-file.ts'
import { readSettings } from '../../../src/standalone/settings/settings.ts'
import { temporaryFile } from '../../support/temporary-file.ts'
import type { Part, World } from '../simulation.ts'
import { Hook } from '../virtual-time.ts'
import { faults } from './faults.ts'
import { Files } from './files.ts'
import { Followed, readTokens, readUrl, type Held, type LogLine } from './followed.ts'
import { scenarios, urlOf, type Scenario } from './scenario.ts'

const open = new Hook<(path: string) => Promise<object>>(fsPromises, 'open')
const write = new Hook<(line: string) => boolean>(process.stderr, 'write')

/** When the signal came because of which a file is looked at. */
const signalled = new AsyncLocalStorage<number>()

/** The tokens that may be held: those that are written, and one that is cut. */
const TOKENS = ['t', 't0', 't1', 't2', 't3', 't4', 't5']

const NAMES = ['tokens', 'url'] as const

/** What the files hold at the start, without their end. */
const TEXTS = { tokens: 'ann:t0\nbob:t1 read', url: urlOf(':secret0') }

// At the start a program reads its files at once. That is the same for all scenarios.
const scope = { after: (remove: () => void): unknown => process.once('exit', remove) }
const { tokensFile, storeUrlFile } = readSettings({
  PLANT_STORE_TOKENS_FILE: temporaryFile(scope, TEXTS.tokens),
  PLANT_STORE_URL_FILE: temporaryFile(scope, TEXTS.url),
})

/** A program whose tokens, and the URL of its store, come from files that change while it runs. */
export const rotation: Part<Scenario> = {
  name: 'rotation',
  scenarios,
  faults,
  play: (scenario, world) => new RotationSimulation(scenario, world).play(),
}

class RotationSimulation {
  readonly #scenario: Scenario
  readonly #world: World
  readonly #files: Files
  readonly #source: ReturnType<typeof createTokenSource>
  readonly #storeUrl: ReturnType<typeof followStoreUrl>
  readonly #followed: Readonly<Record<string, Followed>>

  constructor(scenario: Scenario, world: World) {
    this.#scenario = scenario
    this.#world = world
    this.#files = new Files(world, world.inTurn(scenario.fates))
    for (const name of NAMES) {
      this.#files.change({ name, how: 'rename', text: TEXTS[name] + scenario.end, pieces: [] })
    }
    this.#source = createTokenSource(tokensFile!.value, this.#follow(tokensFile!, 'tokens'))
    this.#storeUrl = followStoreUrl('', this.#follow(storeUrlFile!, 'url'))
    const tokens = new Followed('tokens', world, TEXTS.tokens + scenario.end, readTokens, this.#callers, 10_000)
    const url = new Followed(
      'store-url',
      world,
      TEXTS.url + scenario.end,
      readUrl,
      () => ({ url: this.#storeUrl.current() }),
      Infinity,
    )
    this.#followed = { tokens, url, store: url }
    world.atEnd(open.take((path) => this.#files.open(path, this.#followed[path]!.beginLook(signalled.getStore()))))
    world.atEnd(write.take((line) => this.#hear(line)))
  }

  async play(): Promise<void> {
    const { events } = this.#scenario
    await this.#world.begin(events, (event) => {
      for (const name of NAMES) this.#followed[name]!.expectHeld()
      if (event.name !== 'signal') this.#files.change(event)
      else signalled.run(this.#world.time.now, this.#signal)
    })
    // It is quiet for longer than the time between two looks.
    await this.#world.pass(60_000)
    const signals = events.filter(([, { name }]) => name === 'signal').length
    for (const name of NAMES) this.#followed[name]!.end(signals)
    const isSeen = this.#followed['tokens']!.told === this.#files.read('tokens')
    this.#world.expect(isSeen, 'what is there in the end was seen')
    this.#world.expect(this.#files.opened === 0, 'each file is closed')
    this.#world.expect(this.#world.time.left === 1, 'no timer is left in the end but one for the next look')
  }

  /** As `life-cycle.ts` does. */
  readonly #signal = (): void => {
    this.#source.reread()
    this.#storeUrl.reread()
  }

  #follow<T>(file: SettingFile<T>, path: (typeof NAMES)[number]): SettingFile<T> {
    return { ...file, path, bytes: Buffer.from(TEXTS[path] + this.#scenario.end) }
  }

  #hear(line: string): boolean {
    const told = JSON.parse(line.replace(/"time":"[^"]*",/, '')) as LogLine
    // Node 20 has no SQLite, which some reasons name.
    this.#world.tell({ ...told, reason: told.reason?.slice(0, 60) })
    this.#world.expect(!/cret\d|ret4|\bt\d/.test(line), 'no line of the log holds a secret')
    this.#followed[told.event.split('-')[0]!]!.hear(told)
    return true
  }

  readonly #callers = (): Held => {
    const callers = TOKENS.map((token) => [token, this.#source.authenticate(token)] as const)
    const held = callers.filter(([, caller]) => caller !== undefined)
    return Object.fromEntries(held.map(([token, caller]) => [token, `${caller!.owner} ${caller!.access}`]))
  }
}
