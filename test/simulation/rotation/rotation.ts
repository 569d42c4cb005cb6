import { AsyncLocalStorage } from 'node:async_hooks'
import { hash } from 'node:crypto'
import fsPromises from 'node:fs/promises'
import { rejectedFiles } from '../../../src/standalone/log.ts'
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
export const rotation: Part<Scenario> = { name: 'rotation', scenarios, faults, play }

async function play({ end, events, fates }: Scenario, world: World): Promise<void> {
  const files = new Files(world, world.inTurn(fates))
  for (const name of NAMES) files.change({ name, how: 'rename', text: TEXTS[name] + end, pieces: [] })
  const source = createTokenSource(tokensFile!.value, follow(tokensFile!, 'tokens'))
  const storeUrl = followStoreUrl('', follow(storeUrlFile!, 'url'))
  const currentUrl = (): Held => ({ url: storeUrl.current() })
  const tokens = new Followed('tokens', world, TEXTS.tokens + end, readTokens, currentCallers, 10_000)
  const url = new Followed('store-url', world, TEXTS.url + end, readUrl, currentUrl, 10_000)
  const followed: Readonly<Record<string, Followed>> = { tokens, url, store: url }
  world.atEnd(open.take((path) => files.open(path, followed[path]!.beginLook(signalled.getStore()))))
  world.atEnd(write.take(hear))

  function follow<T>(file: SettingFile<T>, path: (typeof NAMES)[number]): SettingFile<T> {
    return { ...file, path, digest: hash('sha256', TEXTS[path] + end), endsWithNewline: end === '\n' }
  }

  function currentCallers(): Held {
    const callers = TOKENS.map((token) => [token, source.authenticate(token)] as const)
    const held = callers.filter(([, caller]) => caller !== undefined)
    return Object.fromEntries(held.map(([token, caller]) => [token, `${caller!.owner} ${caller!.access}`]))
  }

  function hear(line: string): boolean {
    const told = JSON.parse(line.replace(/"time":"[^"]*","level":"[a-z]*",/, '')) as LogLine
    // Node 20 has no SQLite, which some reasons name.
    world.tell({ ...told, reason: told.reason?.slice(0, 60) })
    world.expect(!/cret\d|ret4|\bt\d/.test(line), 'no line of the log holds a secret')
    followed[told.event.split('-')[0]!]!.hear(told)
    const { variable } = told.event.startsWith('tokens') ? tokensFile! : storeUrlFile!
    const isRejected = told.event.endsWith('-kept')
    world.expect(rejectedFiles.get(variable) === isRejected, 'the metric shows whether the file is rejected')
    return true
  }

  /** As `life-cycle.ts` does. */
  function signal(): void {
    source.reread()
    storeUrl.reread()
  }

  await world.begin(events, (event) => {
    for (const name of NAMES) followed[name]!.expectHeld()
    if (event.name !== 'signal') files.change(event)
    else signalled.run(world.time.now, signal)
  })
  // It is quiet for longer than the time between two looks.
  await world.pass(60_000)
  const signals = events.filter(([, { name }]) => name === 'signal').length
  for (const name of NAMES) followed[name]!.end(signals)
  world.expect(tokens.told === files.read('tokens'), 'what is there in the end was seen')
  world.expect(files.opened === 0, 'each file is closed')
  world.expect(world.time.left === 2, 'the only timers left are those for the next look at each file')
}
