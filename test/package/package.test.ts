import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, posix } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { codeOf } from '../support/package/documents.ts'
import { installPackage, packPackage, UNCOVERED } from '../support/package/packed.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

/** The most bytes that may be downloaded; what takes the room stands in CONTRIBUTING. */
const MAX_PACKED_BYTES = 153_000

/** An empty project in which the packed package is installed, as a user gets it. */
suite('the package', () => {
  let tarball: string
  let project: string
  let folder: string
  let files: readonly string[]

  before(async () => {
    tarball = (await packPackage()).tarball
    project = await mkdtemp(join(tmpdir(), 'plant-store-'))
    await installPackage(project, tarball)
    folder = join(project, 'node_modules/plant-store')
    const entries = await readdir(folder, { recursive: true, withFileTypes: true })
    files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
    files = files.map((path) => posix.relative(folder, path)).sort()
  })

  after(() => rm(project, { recursive: true }))

  async function runInProject(file: string, text: string): Promise<string> {
    await writeFile(join(project, file), text)
    return (await run(process.execPath, [file], { cwd: project, env: UNCOVERED })).stdout
  }

  test('is small', async () => {
    const { size } = await stat(tarball)
    assert.ok(size <= MAX_PACKED_BYTES, `${size} bytes are packed`)
  })

  test('holds nothing but dist and what describes it', () => {
    const names = new Set(files.map((path) => path.replace(/^dist\/.*|(?<=^docs\/).*(?=\.md$)/, '*')))
    assert.deepEqual([...names].sort(), [
      '*',
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'docs/*.md',
      'docs/grafana.json',
      'package.json',
    ])
  })

  test('has nothing that an earlier build left', () => {
    const left = files.filter((path) => path.includes('/left.'))
    assert.deepEqual(left, [])
  })

  test('has its comments in the declarations only', async () => {
    for (const path of files.filter((name) => name.endsWith('js'))) {
      assert.doesNotMatch(await readFile(join(folder, path), 'utf8'), /^\s*(\/\/|\/\*)/m, path)
    }
    assert.match(await readFile(join(folder, 'dist/plant-store.d.ts'), 'utf8'), /^\/\*\*\n \* Makes a service/m)
  })

  test('has the right types for each way in which compilers find modules', async () => {
    const found = await checkPackage(createPackageFromTarballData(await readFile(tarball)))
    assert.ok(found.types !== false)
    assert.deepEqual([found.types.kind, found.problems], ['included', []])
  })

  test('is what publint asks for', async () => {
    const { messages } = await publint({ pkgDir: folder, pack: false, strict: true })
    assert.deepEqual(messages, [])
  })

  test('brings no other package along', async () => {
    const installed = await readdir(join(project, 'node_modules'))
    assert.deepEqual(
      installed.filter((name) => !name.startsWith('.')),
      ['plant-store'],
    )
    const manifest = await readFile(join(root, 'package.json'), 'utf8')
    assert.equal((JSON.parse(manifest) as { dependencies?: object }).dependencies, undefined)
  })

  for (const [file, load] of [
    ['all.mjs', 'await import'],
    ['all.cjs', 'require'],
  ] as const) {
    test(`exports each of its modules, by ${load}()`, async () => {
      const { exports } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { exports: object }
      const paths = Object.keys(exports).filter((path) => path !== './package.json')
      const names = JSON.stringify(paths.map((path) => posix.join('plant-store', path)))
      const show = `console.log(name, Object.keys(${load}(name)).sort().join())`
      const stdout = await runInProject(file, `for (const name of ${names}) ${show}`)
      assert.deepEqual(stdout.trim().split('\n'), [
        'plant-store MAX_PAGE,MAX_PAGE_BYTES,StoreUnavailableError,createPlantStore,memoryStore,openapi',
        'plant-store/sqlite sqliteStore',
        'plant-store/postgres postgresStore,schema',
        'plant-store/server createServer',
        'plant-store/conformance storeConformance',
      ])
    })
  }

  test('compiles in a strict project, with the signatures that docs/stores.md shows', async () => {
    await mkdir(join(project, 'node_modules/@types'), { recursive: true })
    for (const name of ['@types/node', 'undici-types']) {
      await cp(join(root, 'node_modules', name), join(project, 'node_modules', name), { recursive: true })
    }
    const text = `
      import { createServer } from 'node:http'
      import type * as Exported from 'plant-store'
      import { createPlantStore } from 'plant-store'
      import { sqliteStore } from 'plant-store/sqlite'
      import { postgresStore } from 'plant-store/postgres'
      import { storeConformance } from 'plant-store/conformance'
      ${codeOf('docs/stores.md', 'ts')}
      export const stores: Exported.Store[] = [sqliteStore(':memory:')]
      export { postgresStore, storeConformance }
      createServer(createPlantStore({ tokens: { secret: 'ada' } }))
      // If both halves had an alias, TypeScript would overlook what is optional or readonly.
      type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
      export const same: [Same<NewPlant, Exported.NewPlant>, Same<PageRequest, Exported.PageRequest>] = [true, true]
      export const store: Same<Store, Exported.Store> = true`
    for (const file of ['main.mts', 'main.cts']) await writeFile(join(project, file), text)
    const options = ['--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', 'false', '--noEmit']
    const target = ['--module', 'nodenext', '--target', 'es2023', '--lib', 'es2023', '--types', 'node']
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const command = [tsc, ...options, ...target, 'main.mts', 'main.cts']
    await run(process.execPath, command, { cwd: project, env: UNCOVERED })
  })
})
