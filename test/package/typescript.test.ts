import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findCodeBlocks, getCode, readDocument } from '../support/package/documents.ts'
import { createProject, runScript } from '../support/package/packed-package.ts'
import { PEERS, skipWithoutPeers } from '../support/package/peers.ts'

/** What a project may import, and a mistake that only the compiler finds. */
const PROGRAM = `
  import { createServer } from 'node:http'
  import { createPlantStore, memoryStore, StoreUnavailableError, type NewPlant, type Store } from 'plant-store'
  import { storeConformance } from 'plant-store/conformance'
  import { postgresStore } from 'plant-store/postgres'
  import { createServer as createBoundedServer } from 'plant-store/server'
  import { sqliteStore } from 'plant-store/sqlite'
  import type { Database } from 'better-sqlite3'
  export const stores: Store[] = [sqliteStore(':memory:'), memoryStore()]
  export const openSqlite = (database: Database): Store => sqliteStore(database)
  export const plant: NewPlant = { id: 1n, name: 'Fern' }
  export { postgresStore, storeConformance, StoreUnavailableError }
  createServer(createPlantStore({ tokens: { secret: 'ada' } }))
  export async function serve(): Promise<void> {
    await using store = sqliteStore(':memory:')
    await using http = createBoundedServer(createPlantStore({ store, tokens: { secret: 'ada' } }))
    http.server.listen()
  }
  // @ts-expect-error an owner is a string
  createPlantStore({ tokens: { secret: 7 } })
`

const NODENEXT = { module: 'nodenext', moduleResolution: 'nodenext' }

const COMPILERS = PEERS.filter((name) => name.startsWith('typescript-'))

/** What a host may export whose types it doesn't write, for declarations of its own. */
const INFERRED = `
  import * as plantStore from 'plant-store'
  import * as conformance from 'plant-store/conformance'
  import * as postgres from 'plant-store/postgres'
  import * as bounded from 'plant-store/server'
  import * as sqlite from 'plant-store/sqlite'
  const { openapi } = plantStore
  export const modules = { plantStore, conformance, postgres, bounded, sqlite }
  export const description = { ...openapi, servers: [] }
  export const schemas = { ...openapi.components.schemas, Pot: { type: 'object' } }
  export const { parameters, headers } = openapi.components
  export const list = openapi.paths['/plants'].get
  export const remove = { ...openapi.paths['/plants/{id}'].delete }
  export const created = openapi.paths['/plants'].post.responses['200']
  export const store = { ...sqlite.sqliteStore(':memory:') }
  export const plants = plantStore.createPlantStore({ store, tokens: { secret: 'ada' } })
  export const http = { ...bounded.createServer(plants) }
  export const open = (...args: Parameters<typeof postgres.postgresStore>) => ({ ...postgres.postgresStore(...args) })
  export const options = { ...({} as plantStore.PlantStoreOptions) }
`

/** OpenAPI tools to which a host hands the description. */
const OPENAPI_TOOLS = `
  import swagger from '@fastify/swagger'
  import { middleware } from 'express-openapi-validator'
  import fastify from 'fastify'
  import type { OpenAPI, OpenAPIV3, OpenAPIV3_1 } from 'openapi-types'
  import type { oas30, oas31 } from 'openapi3-ts'
  import { openapi } from 'plant-store'
  const mounted = { ...openapi, servers: [{ url: '/api/v1' }] }
  export const documents: [OpenAPI.Document, OpenAPIV3.Document, OpenAPIV3_1.Document] = [openapi, mounted, openapi]
  export const objects: [oas30.OpenAPIObject, oas31.OpenAPIObject] = [openapi, mounted]
  void fastify().register(swagger, { openapi })
  void fastify().register(swagger, { mode: 'static', specification: { document: mounted } })
  middleware({ apiSpec: openapi })
  middleware({ apiSpec: mounted })
`

for (const compiler of COMPILERS) {
  test(
    `${compiler} writes declarations of what a host infers from the package`,
    { skip: skipWithoutPeers() },
    async (t) => {
      const options = { ...NODENEXT, declaration: true }
      assert.equal(await compile(t, compiler, { 'main.mts': INFERRED, 'main.cts': INFERRED }, options), '')
    },
  )

  test(`${compiler} lets OpenAPI tools accept the description`, { skip: skipWithoutPeers() }, async (t) => {
    assert.equal(await compile(t, compiler, { 'main.mts': OPENAPI_TOOLS }, NODENEXT), '')
  })

  test(`${compiler} compiles against the package, as ESM and as CommonJS`, { skip: skipWithoutPeers() }, async (t) => {
    // The declarations themselves are checked too.
    const options = { ...NODENEXT, skipLibCheck: false }
    assert.equal(await compile(t, compiler, { 'main.mts': PROGRAM, 'main.cts': PROGRAM }, options), '')
  })
}

const BUNDLER = { module: 'esnext', moduleResolution: 'bundler' }
const NODE10 = { module: 'commonjs', moduleResolution: 'node10' }

// How else a project may have its modules found. The newest compiler has given node10 up.
for (const [compiler, options] of [
  ['typescript-5.4', BUNDLER],
  ['typescript-5.4', NODE10],
  ['typescript-7.0', BUNDLER],
] as const) {
  test(`${compiler} finds the package by ${options.moduleResolution}`, { skip: skipWithoutPeers() }, async (t) => {
    assert.equal(await compile(t, compiler, { 'main.ts': PROGRAM }, options), '')
  })
}

test('the examples in TypeScript compile, as their readers copy them', { skip: skipWithoutPeers() }, async (t) => {
  const blocks = ['docs/frameworks.md', 'docs/authentication.md'].flatMap((path) =>
    findCodeBlocks(readDocument(path), 'ts').map(({ code, line }) => [`${path}-${line}.mts`, code] as const),
  )
  assert.equal(await compile(t, 'typescript-6.0', Object.fromEntries(blocks), NODENEXT), '')
})

test('docs/stores.md shows the signatures of a store', { skip: skipWithoutPeers() }, async (t) => {
  const code = `
    import type * as Exported from 'plant-store'
    ${getCode('docs/stores.md', 'ts')}
    // If both halves had an alias, TypeScript would overlook what is optional or readonly.
    type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
    export const same: [Same<NewPlant, Exported.NewPlant>, Same<PageRequest, Exported.PageRequest>] = [true, true]
    export const store: Same<Store, Exported.Store> = true`
  assert.equal(await compile(t, 'typescript-6.0', { 'main.mts': code }, NODENEXT), '')
})

/**
 * Compiles the files of a strict project that has the package. Gives what the compiler has to say; the types of Node
 * are older than some compilers, and not ours.
 */
async function compile(t: TestContext, compiler: string, files: Record<string, string>, options: object) {
  const strict = { strict: true, exactOptionalPropertyTypes: true, skipLibCheck: true }
  const compilerOptions = { ...strict, target: 'es2022', noEmit: true, types: ['node'], ...options }
  const project = await createProject(t, {
    ...files,
    'tsconfig.json': JSON.stringify({ compilerOptions, files: Object.keys(files) }),
  })
  const tsc = fileURLToPath(new URL(`../peers/node_modules/${compiler}/bin/tsc`, import.meta.url))
  const said = await runScript(`node '${tsc}' --project . --pretty false 2>&1 || true`, project)
  return said
    .split('\n')
    .filter((line) => /^\S/.test(line) && !line.includes('/@types/node/'))
    .join('\n')
}
