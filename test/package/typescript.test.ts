import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findCodeBlocks, getCode, readDocument } from '../support/package/documents.ts'
import { createProject, runScript } from '../support/package/packed-package.ts'
import { PEERS, skipWithoutPeers } from '../support/package/extra-packages.ts'

/** A project that uses every entry point, and a type error that the compiler must report. */
const PROJECT = `
  import { createServer, type IncomingMessage } from 'node:http'
  import { createPlantStore, memoryStore, StoreUnavailableError, type NewPlant, type Store } from 'plant-store'
  import { createPlantClient, PlantStoreError, type ListedPlant, type PlantClient } from 'plant-store/client'
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
  export const client: PlantClient = createPlantClient({ url: 'http://host', token: async () => 'secret', fetch })
  export async function list(): Promise<ListedPlant[]> {
    const plants: ListedPlant[] = []
    for await (const plant of client.list({ after: 1 })) plants.push({ ...plant, id: plant.id + 1n })
    await client.create(plants[0]!).catch((error: unknown) => error instanceof PlantStoreError && error.status)
    return plants
  }
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

const COMPILERS = PEERS.filter((name) => name.startsWith('typescript-'))

/** Exports of a host whose types TypeScript infers and must be able to write into declarations. */
const INFERRED = `
  import * as plantStore from 'plant-store'
  import * as client from 'plant-store/client'
  import * as conformance from 'plant-store/conformance'
  import * as postgres from 'plant-store/postgres'
  import * as bounded from 'plant-store/server'
  import * as sqlite from 'plant-store/sqlite'
  const { openapi } = plantStore
  export const modules = { plantStore, client, conformance, postgres, bounded, sqlite }
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
  export const plantClient = { ...client.createPlantClient({ url: 'http://host', token: 'secret' }) }
  export const options = { ...({} as plantStore.PlantStoreOptions) }
`

/** A host that passes the OpenAPI document to OpenAPI tools. */
const OPENAPI_TOOLS = `
  import swagger from '@fastify/swagger'
  import type { Oas3_1Definition } from '@redocly/openapi-core'
  import { middleware } from 'express-openapi-validator'
  import fastify from 'fastify'
  import type { OpenAPI, OpenAPIV3, OpenAPIV3_1 } from 'openapi-types'
  import type { oas30, oas31 } from 'openapi3-ts'
  import { openapi } from 'plant-store'
  const mounted = { ...openapi, servers: [{ url: '/api/v1' }] }
  export const documents: [OpenAPI.Document, OpenAPIV3.Document, OpenAPIV3_1.Document] = [openapi, mounted, openapi]
  export const objects: [oas30.OpenAPIObject, oas31.OpenAPIObject] = [openapi, mounted]
  export const redocly: Pick<Oas3_1Definition, 'info' | 'paths' | 'security' | 'tags'> = openapi
  void fastify().register(swagger, { openapi })
  void fastify().register(swagger, { mode: 'static', specification: { document: mounted } })
  middleware({ apiSpec: openapi })
  middleware({ apiSpec: mounted })
`

for (const compiler of COMPILERS) {
  test(
    `${compiler} emits declarations for types that a host infers from the package`,
    { skip: skipWithoutPeers },
    async (t) => {
      const options = { ...NODENEXT, declaration: true }
      assert.equal(await compile(t, compiler, { 'main.mts': INFERRED, 'main.cts': INFERRED }, options), '')
    },
  )

  test(
    `${compiler} accepts the OpenAPI description as an argument of OpenAPI tools`,
    { skip: skipWithoutPeers },
    async (t) => {
      assert.equal(await compile(t, compiler, { 'main.mts': OPENAPI_TOOLS }, NODENEXT), '')
    },
  )

  test(
    `${compiler} compiles ES modules and CommonJS modules that use the package`,
    { skip: skipWithoutPeers },
    async (t) => {
      // Also type-checks the declarations of the package.
      const options = { ...NODENEXT, skipLibCheck: false }
      assert.equal(await compile(t, compiler, { 'main.mts': PROJECT, 'main.cts': PROJECT }, options), '')
    },
  )
}

const BUNDLER = { module: 'esnext', moduleResolution: 'bundler' }
const NODE10 = { module: 'commonjs', moduleResolution: 'node10' }

// Other module resolution modes. The newest compiler no longer supports node10.
for (const [compiler, options] of [
  ['typescript-5.4', BUNDLER],
  ['typescript-5.4', NODE10],
  ['typescript-7.0', BUNDLER],
] as const) {
  const mode = options.moduleResolution
  test(`${compiler} resolves the package with moduleResolution ${mode}`, { skip: skipWithoutPeers }, async (t) => {
    assert.equal(await compile(t, compiler, { 'main.ts': PROJECT }, options), '')
  })
}

test('the TypeScript examples in the docs compile', { skip: skipWithoutPeers }, async (t) => {
  const blocks = ['docs/frameworks.md', 'docs/authentication.md'].flatMap((path) =>
    findCodeBlocks(readDocument(path), 'ts').map(({ code, line }) => [`${path}-${line}.mts`, code] as const),
  )
  assert.equal(await compile(t, 'typescript-6.0', Object.fromEntries(blocks), NODENEXT), '')
})

test('an owner of the wrong type is an error in the Express example', { skip: skipWithoutPeers }, async (t) => {
  const code = getCode('docs/authentication.md', 'ts', 'Express').replace('owner: user.id', 'owner: user')
  const errors = await compile(t, 'typescript-6.0', { 'main.mts': code }, NODENEXT)
  assert.match(
    errors,
    /^main\.mts\(\d+,3\): error TS2322: Type .* is not assignable to type '\(token: string, request: /,
  )
})

test('docs/stores.md shows the actual types of a store', { skip: skipWithoutPeers }, async (t) => {
  const code = `
    import type * as Exported from 'plant-store'
    ${getCode('docs/stores.md', 'ts')}
    // Don't extract the two function types into an alias: TypeScript would then ignore optional and readonly.
    type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
    export const same: [Same<NewPlant, Exported.NewPlant>, Same<PageRequest, Exported.PageRequest>] = [true, true]
    export const store: Same<Store, Exported.Store> = true`
  assert.equal(await compile(t, 'typescript-6.0', { 'main.mts': code }, NODENEXT), '')
})

/**
 * Compiles the files of a strict project in which the package is installed. Returns the errors of the compiler, except
 * errors in the types of Node, which are older than some compilers.
 */
async function compile(t: TestContext, compiler: string, files: Record<string, string>, options: object) {
  const strict = { strict: true, exactOptionalPropertyTypes: true, skipLibCheck: true }
  const compilerOptions = { ...strict, target: 'es2022', noEmit: true, types: ['node'], ...options }
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
