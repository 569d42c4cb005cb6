import assert from 'node:assert/strict'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { after, suite, test } from 'node:test'
import { memoryStore } from '../../src/index.ts'
import { importTool, skipWithoutTools } from '../support/extra-packages.ts'
import { installPackage, packPackage, runScript } from '../support/packed-package.ts'
import { createTempDirectory } from '../support/temp-files.ts'
import { get, sendRequest, servePlants } from '../support/service.ts'

/** The maximum download size. */
const MAX_PACKED_BYTES = 120_000

/** The exports of Are The Types Wrong that the test uses. */
interface TypeChecker {
  readonly createPackageFromTarballData: (tarball: Uint8Array) => object
  readonly checkPackage: (contents: object) => Promise<{ types?: unknown; problems?: readonly object[] }>
}

// Installed in a temporary folder, where its modules and types can't resolve the project's own dependencies.
suite('the package', async () => {
  const { tarball } = await packPackage()
  const project = createTempDirectory({ after })
  const warnings = await installPackage(project, tarball)
  const folder = join(project, 'node_modules/plant-store')
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const files = paths.map((path) => posix.relative(folder, path)).sort()
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
    exports: Record<string, { default: string; types: string }>
    dependencies?: object
    scripts: object
  }
  const modules = Object.entries(manifest.exports).filter(([path]) => path !== './package.json')

  test(`is smaller than ${MAX_PACKED_BYTES} bytes`, async () => {
    const { size } = await stat(tarball)
    assert.ok(size <= MAX_PACKED_BYTES, `the package has ${size} bytes`)
  })

  test('contains only dist, the documentation and package.json', () => {
    const names = new Set(files.map((path) => path.replace(/^dist\/.*|(?<=^docs\/).*(?=\.md$)/, '*')))
    const documents = ['LICENSE', 'README.md', 'docs/*.md']
    assert.deepEqual([...names].sort(), ['*', ...documents, 'package.json'])
  })

  test('contains no file of an earlier build', () => assert.ok(!files.includes('dist/left.js')))

  test('runs no script and prints no warning when npm installs it', () => {
    for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) assert.ok(!(name in manifest.scripts), name)
    assert.equal(warnings, '')
  })

  test('installs no other packages', async () => {
    assert.deepEqual(await readdir(join(project, 'node_modules')), ['.bin', '.package-lock.json', 'plant-store'])
    assert.equal(manifest.dependencies, undefined)
  })

  test('contains correct types for ES modules and CommonJS modules', { skip: skipWithoutTools }, async () => {
    const { checkPackage, createPackageFromTarballData } = await importTool<TypeChecker>('@arethetypeswrong/core')
    const { types, problems } = await checkPackage(createPackageFromTarballData(await readFile(tarball)))
    assert.deepEqual(types, { kind: 'included' })
    // The resolution of TypeScript 4 knows no `exports`, and its CommonJS knows no require() of ES modules.
    const isSupported = (problem: object) =>
      !JSON.stringify(problem).includes('"node10"') && !JSON.stringify(problem).includes('"node16-cjs"')
    assert.deepEqual(problems!.filter(isSupported), [])
  })

  test('passes publint', { skip: skipWithoutTools }, async () => {
    const { publint } = await importTool<{ publint: (options: object) => Promise<{ messages: unknown[] }> }>('publint')
    const { messages } = await publint({ pkgDir: folder, pack: false, strict: true })
    assert.deepEqual(messages, [])
  })

  for (const [type, load] of [
    ['module', 'await import'],
    ['commonjs', 'require'],
  ] as const) {
    test(`exports the same names as the sources with ${load}()`, async () => {
      const names = modules.map(([path]) => `"${posix.join('plant-store', path)}"`)
      const code = `for (const name of [${names.join()}]) console.log(Object.keys(${load}(name)).sort().join())`
      const printed = await runScript(`node --no-warnings --input-type=${type} --eval '${code}'`, project)
      const exported = modules.map(async ([, entry]) => {
        const source = entry.default.replace(/^\.\/dist\/(.*)\.js$/, '../../src/$1.ts')
        return Object.keys((await import(source)) as object).sort()
      })
      assert.equal(printed, (await Promise.all(exported)).map((names) => `${names.join()}\n`).join(''))
    })
  }
})

test('a StoreUnavailableError of another copy of the package is recognized by its code', async (t) => {
  const error = Object.assign(new Error('away'), { code: 'PLANT_STORE_UNAVAILABLE' })
  const list = () => Promise.reject(error)
  const server = await servePlants(t, { store: { ...memoryStore(), list }, onError: () => undefined })
  const { status, body } = await sendRequest(server, get('ada'))
  assert.deepEqual([status, (JSON.parse(body) as { error: number }).error], [503, 50300])
})
