import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { PEERS, skipWithoutPeers } from '../support/extra-packages.ts'
import { findCodeBlocks, getCode, readDocument } from '../support/documents.ts'
import { createProject, runScript } from '../support/packed-package.ts'

/** A project that uses every entry point, and type errors that the compiler must report. */
const PROJECT = `
  import { createServer, type IncomingMessage } from 'node:http'
  import { createPlantStore, memoryStore, openapi, StoreUnavailableError, type NewPlant, type Store } from 'plant-store'
  import { createPlantClient, PlantStoreError, type ListedPlant, type PlantClient } from 'plant-store/client'
  import { storeConformance } from 'plant-store/conformance'
  import { postgresStore } from 'plant-store/postgres'
  import { createServer as createPlantServer } from 'plant-store/server'
  import { sqliteStore } from 'plant-store/sqlite'
  export const stores: Store[] = [sqliteStore('plants.db'), memoryStore()]
  export const plant: NewPlant = { id: 1n, name: 'Fern' }
  export { postgresStore, storeConformance, StoreUnavailableError }
  createServer(createPlantStore({ tokens: { secret: 'ada' } }))
  export async function serve(): Promise<void> {
    await using store = sqliteStore('plants.db')
    await using http = createPlantServer(createPlantStore({ store, tokens: { secret: 'ada' } }))
    http.server.listen()
  }
  export const client: PlantClient = createPlantClient({ url: 'http://host', token: async () => 'secret', fetch })
  export async function list(): Promise<ListedPlant[]> {
    const plants: ListedPlant[] = []
    for await (const plant of client.list({ after: 1 })) plants.push({ ...plant, id: plant.id + 1n })
    await client.create(plants[0]!).catch((error: unknown) => error instanceof PlantStoreError && error.status)
    return plants
  }
  // The compiler must be able to write these inferred types into declarations.
  export const description = { ...openapi, servers: [{ url: '/api/v1' }] }
  export const title: string = description.info.title
  export const http = { ...createPlantServer(createPlantStore({ tokens: new Map([['secret', 'ada']]) })) }
  export const open = (...args: Parameters<typeof postgresStore>) => ({ ...postgresStore(...args) })
  // @ts-expect-error an id is a number
  void client.create({ id: '1', name: 'Fern' })
  // @ts-expect-error an owner is a string
  createPlantStore({ tokens: { secret: 7 } })
  type AppRequest = IncomingMessage & { user?: { id: string; number: number } }
  createPlantStore({ authenticate: (token, request: AppRequest) => request.user?.id })
  // @ts-expect-error an owner is a string
  createPlantStore({ authenticate: (token, request: AppRequest) => request.user?.number })
`

const NODENEXT = { module: 'nodenext', moduleResolution: 'nodenext' }
const BUNDLER = { module: 'esnext', moduleResolution: 'bundler' }

suite('the declarations of the package', { skip: skipWithoutPeers }, () => {
  for (const compiler of PEERS.filter((name) => name.startsWith('typescript-'))) {
    // TypeScript 5.8 is the first version in which CommonJS modules can require() ES modules.
    const extensions = compiler < 'typescript-5.8' ? ['mts'] : ['mts', 'cts']
    test(`compile in ${extensions.join(' and ')} modules with ${compiler}`, async (t) => {
      const files = Object.fromEntries(extensions.map((extension) => [`main.${extension}`, PROJECT]))
      const options = { ...NODENEXT, skipLibCheck: false, declaration: true }
      assert.equal(await compile(t, compiler, files, options), '')
    })

    test(`are found by ${compiler} with moduleResolution bundler`, async (t) => {
      assert.equal(await compile(t, compiler, { 'main.ts': PROJECT }, BUNDLER), '')
    })
  }
})

suite('the TypeScript code in the docs', { skip: skipWithoutPeers }, () => {
  test('compiles', async (t) => {
    const blocks = ['docs/frameworks.md', 'docs/authentication.md', 'docs/embedding.md'].flatMap((path) =>
      findCodeBlocks(readDocument(path), 'ts').map(({ code, line }) => [`${path}-${line}.mts`, code] as const),
    )
    const options = { ...NODENEXT, lib: ['es2022', 'esnext.disposable'] }
    assert.equal(await compile(t, 'typescript-6.0', Object.fromEntries(blocks), options), '')
  })

  test('has the actual types of a store in docs/stores.md', async (t) => {
    const code = `
      import type * as Exported from 'plant-store'
      ${getCode('docs/stores.md', 'ts')}
      // Don't extract the two function types into an alias: TypeScript would then ignore optional and readonly.
      type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
      export const same: [Same<NewPlant, Exported.NewPlant>, Same<PageRequest, Exported.PageRequest>] = [true, true]
      export const store: Same<Store, Exported.Store> = true`
    assert.equal(await compile(t, 'typescript-6.0', { 'main.mts': code }, NODENEXT), '')
  })
})

/**
 * Compiles the files of a strict project in which the package is installed. Returns the errors of the compiler, except
 * errors in the types of Node, which are newer than some compilers.
 */
async function compile(t: TestContext, compiler: string, files: Record<string, string>, options: object) {
  const strict = { strict: true, exactOptionalPropertyTypes: true, skipLibCheck: true }
  const compilerOptions = { ...strict, target: 'es2022', types: ['node'], rootDir: '.', outDir: 'compiled', ...options }
  const project = await createProject(t, {
    ...files,
    'tsconfig.json': JSON.stringify({ compilerOptions, files: Object.keys(files) }),
  })
  const tsc = fileURLToPath(new URL(`../peers/node_modules/${compiler}/bin/tsc`, import.meta.url))
  const output = await runScript(`node '${tsc}' --project . --pretty false 2>&1 || true`, project)
  return output
    .split('\n')
    .filter((line) => /^\S/.test(line) && !line.includes('/@types/node/'))
    .join('\n')
}
