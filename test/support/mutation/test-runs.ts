import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import type { Mutant } from './mutants.ts'

const CONTRACT = 'contract/contract'

/** Tests of a file, or of a folder, that are not in its mirror. */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  '.': [CONTRACT, 'hostile/hostile'],
  conformance: ['conformance/store-conformance'],
  http: [CONTRACT, 'options'],
  'http/body': ['contract/body-parsers', 'hostile/broken-bodies', 'hostile/early-answers'],
  'http/errors': ['hostile/faults'],
  'http/json': ['http/json/reader', 'http/json/random-json'],
  'http/respond': ['hostile/answers-once', 'hostile/early-answers', 'hostile/cut-lists', 'contract/lost-streams'],
  'http/turn': ['hostile/answers-once', 'hostile/pipelining'],
  'maybe-promise': ['hostile/faults'],
  openapi: ['openapi/openapi', 'contract/openapi'],
  operations: ['hostile/faults', 'plants/listing'],
  'option-checks': ['options'],
  plants: ['plants/listing', CONTRACT],
  'plants/checked-store': ['options', 'hostile/faults'],
  'plants/int64': ['http/json/reader'],
  'plants/listing': ['plants/list-turns', 'plants/random-changes', 'plants/large-plants'],
  'plants/plant': ['stores/page-builder', 'plants/large-plants'],
  'plant-store': ['hostile/faults'],
  'standalone/command-line': ['server'],
  'standalone/common-fields': ['standalone/request-ids', 'standalone/cors'],
  'standalone/drain': ['standalone/drain-steps'],
  'standalone/environment': ['standalone/settings'],
  'standalone/http-server': ['standalone/turns', 'standalone/drain', 'standalone/server'],
  'standalone/life-cycle': [
    'server',
    'standalone/admin',
    'standalone/log',
    'standalone/page/documents',
    'standalone/turned-away',
    'stores/open-store',
    'stores/postgres/open-postgres',
  ],
  'standalone/log': ['standalone/reports'],
  'standalone/metrics/event-loop': ['standalone/metrics/metrics'],
  'standalone/metrics/store-calls': ['standalone/metrics/metrics'],
  'standalone/metrics/process': ['standalone/metrics/metrics'],
  'standalone/metrics/requests': ['standalone/metrics/metrics'],
  'standalone/program': ['standalone/cors', 'standalone/metrics/metrics', 'standalone/page/documents', 'server'],
  'standalone/program-description': ['contract/openapi'],
  'standalone/program-paths': ['standalone/cors'],
  'standalone/refusal': ['standalone/cors', 'standalone/http-server'],
  'standalone/routes': ['standalone/cors', 'standalone/metrics/metrics'],
  'standalone/settings': ['standalone/tokens'],
  'standalone/slices': ['standalone/turns'],
  'standalone/stall': ['standalone/stall-looks'],
  'standalone/tokens': ['standalone/settings'],
  'standalone/variables': ['standalone/settings', 'standalone/tokens', 'standalone/cors'],
  'stores/batches': ['stores/batcher'],
  'stores/memory': ['stores/memory/memory-store'],
  'stores/page-builder': ['stores/memory/memory-store'],
  'stores/postgres/check': ['stores/postgres/connections'],
  'stores/postgres/connect-soon': ['stores/postgres/connections'],
  'stores/postgres/connections': ['stores/postgres/trouble'],
  'stores/postgres/list': ['stores/postgres/postgres-store'],
  'stores/postgres/open-postgres': ['stores/open-store'],
  'stores/postgres/pool': ['stores/postgres/postgres-store'],
  'stores/postgres/postgres-store': ['stores/postgres/scripted-pool', 'stores/postgres/connections'],
  'stores/postgres/sender': ['stores/postgres/connections'],
  'stores/postgres/silence': ['stores/postgres/connections'],
  'stores/postgres/statements': [
    'stores/postgres/list',
    'stores/postgres/scripted-pool',
    'stores/postgres/postgres-store',
  ],
  'stores/sqlite/connection': ['stores/sqlite/sqlite-store'],
  'stores/sqlite/errors': ['stores/sqlite/sqlite-store'],
  'stores/sqlite/write-queue': ['stores/sqlite/sqlite-store'],
  version: ['openapi/openapi'],
}

/** After so long without a word a test file hangs, in milliseconds. */
const MAX_SILENCE_MS = 60_000

/** Runs test files, with mutants and without. */
export class TestRuns {
  readonly #folder = mkdtempSync(join(tmpdir(), 'mutation-'))
  /** How long each test file takes without a mutant; Infinity if it fails. */
  readonly #durations = new Map<string, number>()
  /** The longest time for which each has said nothing. */
  readonly #silences = new Map<string, number>()
  /** How many mutants of a file each test has killed. */
  readonly #kills = new Map<string, Map<string, number>>()
  readonly #tests: readonly string[]

  constructor() {
    const files = ['src', 'test'].flatMap((folder) => typescriptIn(folder))
    for (const file of files) this.#write(file, readFileSync(file, 'utf8'))
    this.#tests = files.filter((file) => file.endsWith('.test.ts'))
  }

  /** The first test file that fails with a mutant; undefined if it survives all of its file. */
  async findKiller(mutant: Mutant): Promise<string | undefined> {
    this.#write('mutant', mutant.source)
    for (const test of this.#testsOf(mutant.file)) {
      if ((await this.#duration(test)) === Infinity) continue
      const maxSilence = 5000 + 4 * this.#silences.get(test)!
      if ((await this.#run(test, maxSilence, mutant.file)) !== undefined) continue
      const kills = this.#kills.get(mutant.file)!
      kills.set(test, (kills.get(test) ?? 0) + 1)
      return test
    }
    return undefined
  }

  /**
   * The tests of a file: its mirror and those elsewhere, or else all beside; first those that have killed most of its
   * mutants for the time that they take.
   */
  #testsOf(file: string): readonly string[] {
    const name = file.replace(/^src\/(.*)\.ts$/, '$1')
    const names = [name, ...(ELSEWHERE[name] ?? []), ...(ELSEWHERE[dirname(name)] ?? [])]
    const named = names.map((test) => `test/${test}.test.ts`).filter((test) => this.#tests.includes(test))
    const beside = this.#tests.filter((test) => dirname(test) === `test/${dirname(name)}`)
    const tests = [...new Set(named.length > 0 ? named : beside)]
    const kills = this.#kills.get(file) ?? new Map<string, number>()
    this.#kills.set(file, kills)
    const rate = (test: string): number => ((kills.get(test) ?? 0) + 1) / (this.#durations.get(test) ?? 1)
    return tests.sort((a, b) => rate(b) - rate(a))
  }

  end(): void {
    rmSync(this.#folder, { recursive: true })
  }

  #write(file: string, source: string): void {
    const path = join(this.#folder, `${file}.js`)
    const { target, module } = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext }
    const { outputText } = ts.transpileModule(source, {
      compilerOptions: { target, module, verbatimModuleSyntax: true },
    })
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, outputText)
  }

  async #duration(test: string): Promise<number> {
    const known = this.#durations.get(test)
    if (known !== undefined) return known
    const start = performance.now()
    const silence = await this.#run(test, MAX_SILENCE_MS, '')
    if (silence === undefined) console.log(`${test} fails without a mutant, or hangs, and is left out.`)
    const ms = silence === undefined ? Infinity : performance.now() - start
    this.#durations.set(test, ms)
    this.#silences.set(test, silence ?? 0)
    return ms
  }

  /**
   * Runs a test file. It is ended, with all that it has started, when the first test fails, or when it says nothing for
   * so long.
   * @returns for how long it has said nothing at most; undefined if it does not pass
   */
  #run(test: string, maxSilenceMs: number, mutant: string): Promise<number | undefined> {
    const query = new URLSearchParams({ folder: this.#folder, mutant })
    const loader = `${new URL('loader.js', import.meta.url).href}?${query.toString()}`
    return new Promise((resolve) => {
      const child = spawn(process.execPath, ['--import', loader, '--test-reporter=tap', test], {
        stdio: ['ignore', 'pipe', 'ignore'],
        detached: true,
        // A test that is ended drops no database, so those that need one are skipped.
        env: { ...process.env, TEST_POSTGRES_URL: undefined, TEST_REQUIRE_ALL: undefined },
      })
      let silenceMs = 0
      let heardAt = performance.now()
      const kill = (): void => {
        child.stdout.destroy()
        clearTimeout(timer)
        resolve(undefined)
        try {
          process.kill(-child.pid!, 'SIGKILL')
        } catch {
          // All of them have ended.
        }
      }
      const timer = setTimeout(kill, maxSilenceMs)
      const hear = (): void => {
        silenceMs = Math.max(silenceMs, performance.now() - heardAt)
        heardAt = performance.now()
      }
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        hear()
        timer.refresh()
        if (/^ *not ok /m.test(text)) kill()
      })
      child.on('exit', (code) => {
        hear()
        clearTimeout(timer)
        resolve(code === 0 ? silenceMs : undefined)
      })
    })
  }
}

function typescriptIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !/^peers|node_modules|browser/.test(name))
    .map((name) => join(folder, name))
}
