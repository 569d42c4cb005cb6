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
import { blocksOf, readDocument } from '../support/package/documents.ts'
import { installPackage, packPackage, UNCOVERED } from '../support/package/packed.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

/** The most bytes that may be downloaded; what takes the room stands in CONTRIBUTING. */
const MAX_PACKED_BYTES = 150_000

/** A module, and its declarations. */
interface Target {
  readonly types: string
  readonly default: string
}

/** What package.json says of the modules. */
interface Manifest {
  readonly bin: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, { require: Target; default: Target }>>
  readonly main: string
  readonly types: string
  readonly typesVersions: Readonly<Record<'*', Readonly<Record<string, readonly string[]>>>>
}

function modulesOf({ exports }: Manifest): [string, { require: Target; default: Target }][] {
  return Object.entries(exports).filter(([name]) => name !== './package.json')
}

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

  async function readManifest(): Promise<Manifest> {
    return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest
  }

  test('is small', async () => {
    const { size } = await stat(tarball)
    assert.ok(size <= MAX_PACKED_BYTES, `${size} bytes are packed`)
  })

  test('holds nothing but dist and what describes it', () => {
    const names = new Set(files.map((path) => path.replace(/^dist\/.*|(?<=^docs\/).*(?=\.md$)/, '*')))
    assert.deepEqual([...names].sort(), ['*', 'LICENSE', 'README.md', 'docs/*.md', 'package.json'])
  })

  test('has in dist what is imported, the page, and nothing that an earlier build left', async () => {
    const manifest = await readManifest()
    const targets = modulesOf(manifest).flatMap(([, { require, default: esm }]) => [
      ...[require.types, require.default],
      ...[esm.types, esm.default],
    ])
    const reached = new Set([...targets, ...Object.values(manifest.bin)].map((path) => posix.normalize(path)))
    for (const path of reached) {
      const text = await readFile(join(folder, path), 'utf8')
      for (const [, module] of text.matchAll(/(?:from |import\(|require\()['"](\..*?)['"]/g)) {
        const isDeclaration = /\.d\.c?ts$/.test(path)
        const target = posix.join(posix.dirname(path), module!)
        reached.add(isDeclaration ? target.replace(/[jt]s$/, 'd.ts') : target)
      }
    }
    for (const type of ['css', 'html', 'js']) reached.add(`dist/standalone/paths/page/page.${type}`)
    assert.deepEqual(
      files.filter((path) => path.startsWith('dist/')),
      [...reached].sort(),
    )
  })

  test('has its comments in the declarations only', async () => {
    for (const path of files.filter((name) => name.endsWith('js') && !name.includes('/page/'))) {
      assert.doesNotMatch(await readFile(join(folder, path), 'utf8'), /^\s*(\/\/|\/\*)/m, path)
    }
    assert.match(await readFile(join(folder, 'dist/plant-store.d.ts'), 'utf8'), /^\/\*\*\n \* Makes a service/m)
  })

  test('says the same of its modules to each way of finding them', async () => {
    const manifest = await readManifest()
    const { main, types, typesVersions } = manifest
    const modules = modulesOf(manifest)
    for (const [name, { require, default: esm }] of modules) {
      const path = esm.default.replace(/\.js$/, '')
      assert.deepEqual(esm, { types: `${path}.d.ts`, default: `${path}.js` })
      assert.deepEqual(require, { types: `${path}.d.cts`, default: `${path}.cjs` })
      if (name === '.') assert.deepEqual([main, types], [esm.default, esm.types])
      else assert.deepEqual(typesVersions['*'][name.slice(2)], [esm.types])
    }
    assert.equal(Object.keys(typesVersions['*']).length, modules.length - 1)
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

  test('works from require()', async () => {
    const stdout = await runInProject(
      'cjs.cjs',
      `const { createPlantStore } = require('plant-store')
       console.log(createPlantStore({ tokens: { secret: 'ada' } }).length)`,
    )
    assert.equal(stdout, '3\n')
  })

  test('exports each of its modules', async () => {
    const names = modulesOf(await readManifest()).map(([name]) => posix.join('plant-store', name))
    const stdout = await runInProject(
      'all.mjs',
      `for (const name of ${JSON.stringify(names)}) {
         console.log(name, Object.keys(await import(name)).sort().join())
       }`,
    )
    assert.deepEqual(stdout.trim().split('\n'), [
      'plant-store MAX_PAGE,MAX_PAGE_BYTES,StoreUnavailableError,createPlantStore,memoryStore,openapi',
      'plant-store/sqlite sqliteStore',
      'plant-store/postgres postgresStore,schema',
      'plant-store/server createServer',
      'plant-store/conformance storeConformance',
    ])
  })

  test('compiles in a strict project, with the signatures that docs/stores.md shows', async () => {
    await mkdir(join(project, 'node_modules/@types'), { recursive: true })
    for (const name of ['@types/node', 'undici-types']) {
      await cp(join(root, 'node_modules', name), join(project, 'node_modules', name), { recursive: true })
    }
    const [signatures] = blocksOf(readDocument('docs/stores.md'), 'ts')
    const text = `
      import { createServer } from 'node:http'
      import type * as Exported from 'plant-store'
      import { createPlantStore } from 'plant-store'
      import { sqliteStore } from 'plant-store/sqlite'
      import { postgresStore } from 'plant-store/postgres'
      import { storeConformance } from 'plant-store/conformance'
      ${signatures!.code}
      export const stores: Exported.Store[] = [sqliteStore(':memory:')]
      export { postgresStore, storeConformance }
      createServer(createPlantStore({ tokens: { secret: 'ada' } }))
      type Is<A> = <T>() => T extends A ? 1 : 2
      type Same<A, B> = Is<A> extends Is<B> ? true : false
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
