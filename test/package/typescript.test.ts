import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { suite, test } from 'node:test'
import { blocksOf, readDocument } from '../support/package/documents.ts'
import { createProject, UNCOVERED } from '../support/package/packed.ts'
import { PEERS, requirePeer, skipWithoutPeers } from '../support/package/peers.ts'

/** What a project may import, and a mistake that only the compiler finds. */
const PROGRAM = `
  import { createServer } from 'node:http'
  import { createPlantStore, memoryStore, StoreUnavailableError, type NewPlant, type Store } from 'plant-store'
  import { storeConformance } from 'plant-store/conformance'
  import { postgresStore } from 'plant-store/postgres'
  import { sqliteStore } from 'plant-store/sqlite'
  import type { Database } from 'better-sqlite3'
  export const stores: Store[] = [sqliteStore(':memory:'), memoryStore()]
  export const openSqlite = (database: Database): Store => sqliteStore(database)
  export const plant: NewPlant = { id: 1n, name: 'Fern' }
  export { postgresStore, storeConformance, StoreUnavailableError }
  createServer(createPlantStore({ tokens: { secret: 'ada' } }))
  // @ts-expect-error an owner is a string
  createPlantStore({ tokens: { secret: 7 } })
`

/** How a project has its modules found, and which kind the compiler makes of them. */
const PROJECTS = {
  // The declarations themselves are checked here; once is enough, as this takes longest.
  'ESM and CommonJS, nodenext': {
    files: ['main.mts', 'main.cts'],
    options: { module: 'nodenext', moduleResolution: 'nodenext', skipLibCheck: false },
  },
  'a bundler': { files: ['main.ts'], options: { module: 'esnext', moduleResolution: 'bundler', skipLibCheck: true } },
  'CommonJS, node10': {
    files: ['main.ts'],
    options: { module: 'commonjs', moduleResolution: 'node10', skipLibCheck: true },
  },
}

const COMPILERS = Object.keys(PEERS).filter((name) => name.startsWith('typescript-'))

for (const compiler of COMPILERS) {
  const version = Number(compiler.slice('typescript-'.length))
  suite(compiler, { skip: skipWithoutPeers() }, () => {
    for (const [name, { files, options }] of Object.entries(PROJECTS)) {
      // The compiler itself has given it up.
      if (options.moduleResolution === 'node10' && version >= 7) continue
      test(`compiles against the package: ${name}`, async (t) => {
        const compilerOptions = {
          ...options,
          target: 'es2022',
          strict: true,
          exactOptionalPropertyTypes: true,
          noEmit: true,
          types: ['node'],
          ...(version >= 6 && version < 7 && { ignoreDeprecations: '6.0' }),
        }
        const tsconfig = JSON.stringify({ compilerOptions, files })
        const project = await createProject(t, {
          ...Object.fromEntries(files.map((file) => [file, PROGRAM])),
          'tsconfig.json': tsconfig,
        })
        assert.equal(await compile(compiler, project), '')
      })
    }
  })
}

/** The examples in TypeScript, as their readers copy them. */
const EXAMPLES = ['docs/hosts.md', 'docs/authentication.md'].flatMap((path) =>
  blocksOf(readDocument(path), 'ts').map(({ code, heading }) => [`${path}, ${heading}`, code] as const),
)

for (const [name, code] of EXAMPLES) {
  test(`the example compiles: ${name}`, { skip: skipWithoutPeers() }, async (t) => {
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2022',
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      types: ['node'],
    }
    const tsconfig = JSON.stringify({ compilerOptions, files: ['main.mts'] })
    const project = await createProject(t, { 'main.mts': code, 'tsconfig.json': tsconfig })
    assert.equal(await compile('typescript-5.9', project), '')
  })
}

/** What a compiler has to say about a project. The types of Node are older than some compilers, and not ours. */
function compile(compiler: string, project: string): Promise<string> {
  const tsc = requirePeer.resolve(`${compiler}/package.json`).replace('package.json', 'bin/tsc')
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [tsc, '--project', project, '--pretty', 'false'],
      { env: UNCOVERED },
      (_, stdout, stderr) => {
        const complaints = `${stderr}${stdout}`.split('\n').filter((line) => !line.includes('/@types/node/'))
        resolve(complaints.filter((line) => /^\S/.test(line)).join('\n'))
      },
    )
  })
}
