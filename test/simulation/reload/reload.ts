import { AsyncLocalStorage } from 'node:async_hooks'
import { hash } from 'node:crypto'
import fsPromises from 'node:fs/promises'
import { rejectedFiles } from '../../../src/standalone/log.ts'
import { createTokenSource, createStoreUrlSource } from '../../../src/standalone/settings/reload.ts'
import type { SettingFile } from '../../../src/standalone/settings/setting-file.ts'
import { readSettings } from '../../../src/standalone/settings/settings.ts'
import { createTempFile } from '../../support/temp-files.ts'
import type { SimulatedSystem, Simulation } from '../simulation.ts'
import { Stub } from '../virtual-time.ts'
import { mutants } from './mutants.ts'
import { SimulatedFileSystem } from './simulated-file-system.ts'
import { FileChecker, parseTokens, parseUrl, type AppliedValue, type LogLine } from './file-checker.ts'
import { scenarios, createUrl, type Scenario } from './scenario.ts'

const openStub = new Stub<(path: string) => Promise<object>>(fsPromises, 'open')
const writeStub = new Stub<(line: string) => boolean>(process.stderr, 'write')

/** When the signal that causes a read arrived. */
const signalTime = new AsyncLocalStorage<number>()

/** Tokens that may occur in a file. `t` is a truncated one. */
const TOKENS = ['t', 't0', 't1', 't2', 't3', 't4', 't5']

const FILE_NAMES = ['tokens', 'url'] as const

/** The initial contents of the files, without the final newline. */
const INITIAL_TEXTS = { tokens: 'ann:t0\nbob:t1 read', url: createUrl(':secret0') }

// The server reads its files synchronously at startup, which is the same in all scenarios.
const scope = { after: (remove: () => void): unknown => process.once('exit', remove) }
const { tokensFile, storeUrlFile } = readSettings({
  PLANT_STORE_TOKENS_FILE: createTempFile(scope, INITIAL_TEXTS.tokens),
  PLANT_STORE_URL_FILE: createTempFile(scope, INITIAL_TEXTS.url),
})

/** A running server whose token file and URL file change. */
export const reload: SimulatedSystem<Scenario> = { name: 'reload', scenarios, mutants, play }

async function play({ end, events, faults }: Scenario, world: Simulation): Promise<void> {
  const files = new SimulatedFileSystem(world, world.createFaultSource(faults))
  for (const name of FILE_NAMES) files.change({ name, how: 'rename', text: INITIAL_TEXTS[name] + end, chunks: [] })
  const source = createTokenSource(tokensFile!.value, createSettingFile(tokensFile!, 'tokens'))
  const storeUrl = createStoreUrlSource('', createSettingFile(storeUrlFile!, 'url'))
  const currentUrl = (): AppliedValue => ({ url: storeUrl.getCurrent() })
  const tokens = new FileChecker('tokens', world, INITIAL_TEXTS.tokens + end, parseTokens, currentCallers, 10_000)
  const url = new FileChecker('store-url', world, INITIAL_TEXTS.url + end, parseUrl, currentUrl, 10_000)
  const checkers: Readonly<Record<string, FileChecker>> = { tokens, url, store: url }
  world.addCleanup(openStub.use((path) => files.open(path, checkers[path]!.startRead(signalTime.getStore()))))
  world.addCleanup(writeStub.use(onLogLine))

  function createSettingFile<T>(file: SettingFile<T>, path: (typeof FILE_NAMES)[number]): SettingFile<T> {
    return { ...file, path, digest: hash('sha256', INITIAL_TEXTS[path] + end), endsWithNewline: end === '\n' }
  }

  function currentCallers(): AppliedValue {
    const callers = TOKENS.map((token) => [token, source.authenticate(token)] as const)
    const currentTokens = callers.filter(([, caller]) => caller !== undefined)
    return Object.fromEntries(currentTokens.map(([token, caller]) => [token, `${caller!.owner} ${caller!.access}`]))
  }

  function onLogLine(line: string): boolean {
    const logLine = JSON.parse(line.replace(/"time":"[^"]*","level":"[a-z]*",/, '')) as LogLine
    // The reasons are truncated because some mention SQLite, which Node 20 lacks.
    world.log({ ...logLine, reason: logLine.reason?.slice(0, 60) })
    world.check(!/cret\d|ret4|\bt\d/.test(line), 'no log line contains a secret')
    checkers[logLine.event.split('-')[0]!]!.onLogLine(logLine)
    const { variable } = logLine.event.startsWith('tokens') ? tokensFile! : storeUrlFile!
    const isRejected = logLine.event.endsWith('-kept')
    world.check(rejectedFiles.get(variable) === isRejected, 'the metric shows whether the file is rejected')
    return true
  }

  /** Does the same as the SIGHUP handler in `lifecycle.ts`. */
  function signal(): void {
    source.reload()
    storeUrl.reload()
  }

  await world.playEvents(events, (event) => {
    for (const name of FILE_NAMES) checkers[name]!.checkApplied()
    if (event.name !== 'signal') files.change(event)
    else signalTime.run(world.time.now, signal)
  })
  // Longer than the interval of the checks.
  await world.advance(60_000)
  const signals = events.filter(([, { name }]) => name === 'signal').length
  for (const name of FILE_NAMES) checkers[name]!.checkFinalState(signals)
  world.check(tokens.lastLogged === files.readText('tokens'), 'the final content was read')
  world.check(files.openCount === 0, 'every file is closed')
  world.check(world.time.pendingTimerCount === 2, 'only the timers for the next check of each file are left')
}
