import assert from 'node:assert/strict'
import { exec } from 'node:child_process'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { after, suite, test } from 'node:test'
import { promisify } from 'node:util'
import { ENV_WITHOUT_COVERAGE, installPackage, packPackage, runScript } from '../support/package/packed-package.ts'
import { importTool, skipWithoutTools } from '../support/package/extra-packages.ts'
import { createTempDirectory } from '../support/temp-files.ts'

/** Types that public types consist of, but that the package doesn't export under a name. */
const UNNAMED_TYPES = [
  ...['ArraySchema', 'BaseResponseEvent', 'ERRORS', 'ErrorName', 'Header', 'ObjectSchema', 'OpenApiDocument'],
  ...['OperationObject', 'Parameter', 'PathItem', 'PlantPaths', 'Reference', 'ResourceMethods', 'Response'],
  'ValueSchema',
]

/** The maximum download size. CONTRIBUTING.md lists what uses it. */
const MAX_PACKED_BYTES = 250_000

/** The exports of Are The Types Wrong that the tests use. */
interface TypeChecker {
  readonly createPackageFromTarballData: (tarball: Uint8Array) => object
  readonly checkPackage: (contents: object) => Promise<{ types?: unknown; problems?: readonly unknown[] }>
}

// Installed in a temporary folder, where its modules and types can't resolve the project's own dependencies.
suite('the package', async () => {
  const { tarball } = await packPackage()
  const project = createTempDirectory({ after })
  await installPackage(project, tarball)
  const reinstall = `npm install --offline --no-audit --no-fund '${tarball}'`
  const installOutput = await promisify(exec)(reinstall, { cwd: project, env: ENV_WITHOUT_COVERAGE })
  const folder = join(project, 'node_modules/plant-store')
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const files = paths.map((path) => posix.relative(folder, path)).sort()
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
    exports: Record<string, { default?: { default: string; types: string } }>
    dependencies?: object
    scripts: object
  }

  test(`is smaller than ${MAX_PACKED_BYTES} bytes`, async () => {
    const { size } = await stat(tarball)
    assert.ok(size <= MAX_PACKED_BYTES, `the package has ${size} bytes`)
  })

  test('contains only dist, the documentation and package.json', () => {
    const names = new Set(files.map((path) => path.replace(/^dist\/.*|(?<=^docs\/).*(?=\.md$)/, '*')))
    const documents = ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'docs/*.md', 'docs/grafana.json']
    assert.deepEqual([...names].sort(), ['*', ...documents, 'package.json'])
  })

  test('has no scripts that npm runs or warns about when it installs the package', () => {
    for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) assert.ok(!(name in manifest.scripts), name)
  })

  test('prints no warning when npm installs it', () => assert.equal(installOutput.stderr, ''))

  test('contains no leftovers from earlier builds', () => {
    assert.ok(!files.some((path) => path.includes('/left.')))
  })

  test('contains no comments except in type declarations', async () => {
    for (const path of files.filter((name) => name.endsWith('js'))) {
      assert.doesNotMatch(await readFile(join(folder, path), 'utf8'), /^\s*(\/\/|\/\*)/m, path)
    }
    assert.match(
      await readFile(join(folder, 'dist/plant-store.d.ts'), 'utf8'),
      /^\/\*\*\n \* Creates a request listener/m,
    )
  })

  test('declares only its exports and the types that they refer to', async () => {
    const declarations = files.filter((path) => path.endsWith('.d.ts'))
    const texts = await Promise.all(declarations.map((path) => readFile(join(folder, path), 'utf8')))
    const entries = Object.values(manifest.exports).map((entry) => posix.normalize(entry.default?.types ?? ''))
    const namesIn = (text: string): string[] => [
      ...Array.from(
        text.matchAll(/^export (?:declare )?(?:const|function|class|interface|type) (\w+)/gm),
        ([, name]) => name!,
      ),
      ...Array.from(
        text.matchAll(/^export (?:type )?{([^}]*)}/gm),
        ([, list]) => list!.match(/\w+(?=,|\s*$)/g) ?? [],
      ).flat(),
    ]
    const exported = new Set(texts.filter((_, i) => entries.includes(declarations[i]!)).flatMap(namesIn))
    const others = texts.flatMap(namesIn).filter((name) => !exported.has(name))
    assert.deepEqual(others.sort(), UNNAMED_TYPES)
  })

  test('contains correct types for every module resolution mode', { skip: skipWithoutTools }, async () => {
    const { checkPackage, createPackageFromTarballData } = await importTool<TypeChecker>('@arethetypeswrong/core')
    const result = await checkPackage(createPackageFromTarballData(await readFile(tarball)))
    assert.deepEqual([result.types, result.problems], [{ kind: 'included' }, []])
  })

  test('passes publint', { skip: skipWithoutTools }, async () => {
    const { publint } = await importTool<{ publint: (options: object) => Promise<{ messages: unknown[] }> }>('publint')
    const { messages } = await publint({ pkgDir: folder, pack: false, strict: true })
    assert.deepEqual(messages, [])
  })

  test('installs no other packages', async () => {
    assert.deepEqual(await readdir(join(project, 'node_modules')), ['.bin', '.package-lock.json', 'plant-store'])
    assert.equal(manifest.dependencies, undefined)
  })

  for (const [type, load] of [
    ['module', 'await import'],
    ['commonjs', 'require'],
  ] as const) {
    test(`exports the same names as the sources with ${load}()`, async () => {
      const modules = Object.entries(manifest.exports).filter(([path]) => path !== './package.json')
      const names = modules.map(([path]) => `"${posix.join('plant-store', path)}"`)
      const code = `for (const name of [${names.join()}]) console.log(Object.keys(${load}(name)).sort().join())`
      const printed = await runScript(`node --input-type=${type} --eval '${code}'`, project)
      const exported = modules.map(async ([, entry]) => {
        const source = entry.default!.default.replace(/^\.\/dist\/(.*)\.js$/, '../../src/$1.ts')
        return Object.keys((await import(source)) as object).sort()
      })
      assert.equal(printed, (await Promise.all(exported)).map((names) => `${names.join()}\n`).join(''))
    })
  }
})
