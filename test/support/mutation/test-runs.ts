import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'
import type { Mutant } from './mutants.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** The tests of a file that has no mirror, unless the table says more. */
const WHOLE_SERVICE = ['contract/contract', 'hostile/hostile']

/** Tests of a file that are not in its mirror. */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  'http/bearer': ['options'],
  'http/body': ['contract/contract', 'contract/body-parsers', 'hostile/broken-bodies', 'hostile/early-answers'],
  'http/caller': ['options', 'contract/contract'],
  'http/json/error': ['http/json/reader'],
  'http/json/number': ['http/json/reader', 'http/json/random-json'],
  'http/json/reader': ['http/json/random-json'],
  'http/json/value': ['http/json/reader'],
  'http/respond': ['contract/contract', 'hostile/answers-once', 'hostile/early-answers', 'hostile/faults'],
  'http/turn': ['hostile/pipelining'],
  'plants/checked-store': ['options', 'hostile/faults'],
  'plants/int64': ['http/json/reader', 'contract/contract'],
  'plants/listing': ['plants/random-changes', 'plants/large-plants'],
  'plants/page-turns': ['plants/listing'],
  'plants/plant': ['plants/large-plants', 'stores/memory/memory-store'],
  'stores/batches': ['standalone/metrics/store-calls'],
  'stores/memory/memory-store': ['stores/memory/plant-tree'],
  'stores/memory/plant-tree': ['stores/memory/memory-store'],
  'stores/page-builder': ['stores/memory/memory-store'],
  operations: WHOLE_SERVICE,
  options: ['contract/contract'],
  'plant-store': [...WHOLE_SERVICE, 'hostile/faults'],
}

const MAX_MS = 120_000

/** What a test file does without a mutant. */
interface Baseline {
  readonly ms: number
  /** Files of src and the functions of them that it runs, each as `src/file.ts name`. */
  readonly reached: ReadonlySet<string>
}

/** Runs test files, with mutants and without. */
export class TestRuns {
  readonly #folder = mkdtempSync(join(tmpdir(), 'mutation-'))
  readonly #baselines = new Map<string, Baseline>()
  /** How many mutants of a file each test has killed. */
  readonly #kills = new Map<string, Map<string, number>>()
  readonly #tests: readonly string[]

  constructor() {
    const files = ['src', 'test'].flatMap((folder) => typescriptIn(folder))
    for (const file of files) this.#write(file, readFileSync(file, 'utf8'))
    this.#tests = files.filter((file) => file.endsWith('.test.ts'))
  }

  /** The first test file that fails with a mutant; undefined if it survives those of its file that reach it. */
  async findKiller(mutant: Mutant): Promise<string | undefined> {
    this.#write('mutant', mutant.source)
    for (const test of this.#testsOf(mutant.file)) {
      const baseline = await this.#baseline(test)
      if (!baseline.reached.has(`${mutant.file} ${mutant.within}`)) continue
      if (await this.#passes(test, 5000 + 4 * baseline.ms, mutant.file)) continue
      const kills = this.#kills.get(mutant.file)!
      kills.set(test, (kills.get(test) ?? 0) + 1)
      return test
    }
    return undefined
  }

  /** The tests of a file: its mirror and those elsewhere; first those that have killed most of its mutants. */
  #testsOf(file: string): readonly string[] {
    const name = file.replace(/^src\/(.*)\.ts$/, '$1')
    const own = [name, ...(ELSEWHERE[name] ?? [])].map((test) => `test/${test}.test.ts`)
    const found = own.filter((test) => this.#tests.includes(test))
    const tests = found.length > 0 ? found : WHOLE_SERVICE.map((test) => `test/${test}.test.ts`)
    const kills = this.#kills.get(file) ?? new Map<string, number>()
    this.#kills.set(file, kills)
    return tests.sort((a, b) => (kills.get(b) ?? 0) - (kills.get(a) ?? 0))
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

  async #baseline(test: string): Promise<Baseline> {
    const known = this.#baselines.get(test)
    if (known !== undefined) return known
    const coverage = join(this.#folder, 'coverage', test)
    const start = performance.now()
    const passes = await this.#passes(test, MAX_MS, '', { NODE_V8_COVERAGE: coverage })
    const ms = performance.now() - start
    if (!passes) console.log(`${test} fails, or takes longer than ${MAX_MS} ms, without a mutant, and is left out.`)
    const files = passes ? readdirSync(coverage).map((name) => join(coverage, name)) : []
    const baseline = { ms, reached: new Set(files.flatMap(reachedBy)) }
    this.#baselines.set(test, baseline)
    return baseline
  }

  /** Whether a test file passes in time. It is ended, with all that it has started, when the first test fails. */
  #passes(test: string, maxMs: number, mutant: string, env: NodeJS.ProcessEnv = {}): Promise<boolean> {
    const query = new URLSearchParams({ folder: this.#folder, mutant })
    const loader = `${new URL('loader.js', import.meta.url).href}?${query.toString()}`
    return new Promise((resolve) => {
      const child = spawn(process.execPath, ['--import', loader, '--test-reporter=tap', test], {
        stdio: ['ignore', 'pipe', 'ignore'],
        detached: true,
        // A test that is ended drops no database.
        env: { ...process.env, TEST_POSTGRES_URL: undefined, ...env },
      })
      const kill = (): void => {
        clearTimeout(timer)
        resolve(false)
        try {
          process.kill(-child.pid!, 'SIGKILL')
        } catch {
          // All of them have ended.
        }
      }
      const timer = setTimeout(kill, maxMs)
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        if (/^ *not ok /m.test(text)) kill()
      })
      child.on('exit', (code) => {
        clearTimeout(timer)
        resolve(code === 0)
      })
    })
  }
}

function typescriptIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !/^peers|node_modules|browser/.test(name))
    .map((name) => join(folder, name))
}

interface Coverage {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly {
      readonly functionName: string
      readonly ranges: readonly { readonly count: number }[]
    }[]
  }[]
}

function reachedBy(path: string): string[] {
  const src = pathToFileURL(join(ROOT, 'src/')).href
  const { result } = JSON.parse(readFileSync(path, 'utf8')) as Coverage
  return result
    .filter(({ url }) => url.startsWith(src))
    .flatMap(({ url, functions }) => {
      const file = relative(ROOT, fileURLToPath(url))
      return functions.filter(({ ranges }) => ranges[0]!.count > 0).map(({ functionName }) => `${file} ${functionName}`)
    })
}
