import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { blocksOf, readDocument } from '../support/documents.ts'
import { installPackage, packPackage, UNCOVERED } from '../support/packed.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

/** What package.json says of the modules. */
interface Manifest {
  readonly exports: Readonly<Record<string, { types: { require: string; default: string }; default: string }>>
  readonly main: string
  readonly types: string
  readonly typesVersions: Readonly<Record<'*', Readonly<Record<string, readonly string[]>>>>
}

/** An empty project in which the packed package is installed, as a user gets it. */
suite('the package', () => {
  let project: string
  let files: readonly string[]

  before(async () => {
    const { tarball } = await packPackage()
    project = await mkdtemp(join(tmpdir(), 'plant-store-'))
    await installPackage(project, tarball)
    files = await readdir(join(project, 'node_modules/plant-store'), { recursive: true })
  })

  after(() => rm(project, { recursive: true }))

  async function runInProject(file: string, text: string): Promise<string> {
    await writeFile(join(project, file), text)
    return (await run(process.execPath, [file], { cwd: project, env: UNCOVERED })).stdout
  }

  test('holds nothing but dist, src and what describes them', () => {
    const folders = files.filter((path) => !path.includes('/'))
    assert.deepEqual([...folders].sort(), ['LICENSE', 'README.md', 'dist', 'docs', 'package.json', 'src'])
  })

  test('holds the page that the program shows', () => {
    const page = files.filter((path) => path.startsWith('dist/standalone/page/page.'))
    assert.deepEqual(
      page.toSorted(),
      ['css', 'html', 'js'].map((type) => `dist/standalone/page/page.${type}`),
    )
  })

  test('has a declaration for CommonJS beside each one for ES modules', () => {
    const declarations = files.filter((path) => path.startsWith('dist/') && path.endsWith('.d.ts'))
    const [forCommonJs, forEsm] = [true, false].map((isCopy) => {
      return declarations.filter((path) => path.startsWith('dist/commonjs/') === isCopy)
    })
    assert.deepEqual(forCommonJs!.toSorted(), forEsm!.map((path) => path.replace('dist/', 'dist/commonjs/')).toSorted())
  })

  test('says the same of its modules to each way of finding them', async () => {
    const manifest = JSON.parse(
      await readFile(join(project, 'node_modules/plant-store/package.json'), 'utf8'),
    ) as Manifest
    const { exports, main, types, typesVersions } = manifest
    const modules = Object.entries(exports).filter(([name]) => name !== './package.json')
    for (const [name, { types: found, default: file }] of modules) {
      const declaration = file.replace(/js$/, 'd.ts')
      assert.deepEqual(found, { require: declaration.replace('dist', 'dist/commonjs'), default: declaration })
      for (const path of [file, found.require, found.default]) assert.ok(files.includes(path.slice(2)), path)
      if (name === '.') assert.deepEqual([main, types], [file, declaration])
      else assert.deepEqual(typesVersions['*'][name.slice(2)], [declaration])
    }
    assert.equal(Object.keys(typesVersions['*']).length, modules.length - 1)
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

  test('works from import', async () => {
    const stdout = await runInProject(
      'esm.mjs',
      `import { createPlantStore } from 'plant-store'
       console.log(createPlantStore({ tokens: { secret: 'ada' } }).length)`,
    )
    assert.equal(stdout, '3\n')
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
    const stdout = await runInProject(
      'all.mjs',
      `for (const name of ['plant-store', 'plant-store/sqlite', 'plant-store/postgres', 'plant-store/server', 'plant-store/conformance']) {
         console.log(Object.keys(await import(name)).sort().join())
       }`,
    )
    assert.deepEqual(stdout.trim().split('\n'), [
      'MAX_PAGE,MAX_PAGE_BYTES,StoreUnavailableError,createPlantStore,memoryStore,openapi',
      'sqliteStore',
      'postgresStore,schema',
      'createServer',
      'storeConformance',
    ])
  })

  suite('in a strict project that checks its declarations', () => {
    before(async () => {
      await mkdir(join(project, 'node_modules/@types'), { recursive: true })
      for (const name of ['@types/node', 'undici-types']) {
        await cp(join(root, 'node_modules', name), join(project, 'node_modules', name), { recursive: true })
      }
    })

    /** @throws if the text does not compile */
    async function compile(text: string): Promise<void> {
      await writeFile(join(project, 'main.mts'), text)
      const options = ['--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', 'false', '--noEmit']
      const target = ['--module', 'nodenext', '--target', 'es2023', '--lib', 'es2023', '--types', 'node']
      const tsc = join(root, 'node_modules/typescript/bin/tsc')
      await run(process.execPath, [tsc, ...options, ...target, 'main.mts'], { cwd: project, env: UNCOVERED })
    }

    test('compiles', async () => {
      await compile(
        `import { createServer } from 'node:http'
         import { createPlantStore, type Store } from 'plant-store'
         import { sqliteStore } from 'plant-store/sqlite'
         import { postgresStore } from 'plant-store/postgres'
         import { storeConformance } from 'plant-store/conformance'
         export const stores: Store[] = [sqliteStore(':memory:')]
         export { postgresStore, storeConformance }
         createServer(createPlantStore({ tokens: { secret: 'ada' } }))`,
      )
    })

    test('has the signatures that docs/stores.md shows', async () => {
      const [signatures] = blocksOf(readDocument('docs/stores.md'), 'ts')
      await compile(
        `import type * as Exported from 'plant-store'
         ${signatures!.code}
         type Is<A> = <T>() => T extends A ? 1 : 2
         type Same<A, B> = Is<A> extends Is<B> ? true : false
         export const same: [Same<NewPlant, Exported.NewPlant>, Same<PageRequest, Exported.PageRequest>] = [true, true]
         export const store: Same<Store, Exported.Store> = true`,
      )
    })
  })
})
