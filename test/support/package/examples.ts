import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startChild, type CleanupScope } from '../child-process.ts'
import type { Protocol } from '../wire/client.ts'
import { authenticate } from '../../contract/contract-cases.ts'
import { findPrograms, readDocument, type CodeBlock } from './documents.ts'
import { createProject, ENV_WITHOUT_COVERAGE } from './packed-package.ts'
import { importsPeers, skipWithoutPeers } from './peers.ts'

const POSTGRES_URL = process.env['TEST_POSTGRES_URL']
const REPORT_LISTENING = new URL('../program/report-listening.js', import.meta.url).href
const CERTIFICATE_DIRECTORY = fileURLToPath(new URL('../wire/tls/', import.meta.url))

/** Why an example is skipped; false if it is not. */
export function getSkipReason(code: string): string | false {
  if (importsPeers(code)) return skipWithoutPeers()
  if (code.includes('sqliteStore(') && !isBuiltin('node:sqlite')) return 'this Node has no node:sqlite'
  return code.includes('postgres://') && POSTGRES_URL === undefined && 'TEST_POSTGRES_URL is not set'
}

/** How docs/frameworks.md mounts the service. */
export const FRAMEWORK_EXAMPLES: readonly CodeBlock[] = findPrograms(readDocument('docs/frameworks.md'))

/** Whether code is a whole program; what is none begins with the path of its file. */
export function isCompleteProgram(code: string): boolean {
  return !code.startsWith('// ')
}

/** What an example speaks. */
export function getProtocol(code: string): Protocol {
  if (code.includes("'node:http2'")) return 'h2'
  return code.includes("'node:https'") ? 'https' : 'http'
}

/** What comes before `/plants` in an example. */
export function getMountPath(code: string): string {
  return /'(\/api[^']*)'/.exec(code)?.[1] ?? ''
}

/** Has each token stand for an owner of its own, and the owner `many` have 5,000 plants. */
export function addTestOwners(code: string): string {
  const options = `{ store, authenticate: ${authenticate.toString()}`
  return `
    import { memoryStore } from 'plant-store'
    const store = memoryStore()
    for (let id = 1n; id <= 5000n; id++) store.create('many', { id, name: \`Plant \${id}\` })
    ${code.replace("{ tokens: { 'a-long-random-token': 'ada' }", options)}`
}

/** The list of the owner who has many plants. */
export const MANY_PLANTS_JSON: string = JSON.stringify(
  Array.from({ length: 5000 }, (_, i) => ({ name: `Plant ${i + 1}` })),
)

/**
 * Runs an example, in a project that has the package as a user gets it, until it listens. It ends with the test.
 * @param project where; by default in a project of its own
 */
export async function startExample(
  t: CleanupScope,
  code: string,
  project?: string,
  env: NodeJS.ProcessEnv = {},
): Promise<{ readonly port: number; readonly child: ChildProcess }> {
  const program = code
    .replace('3000', '0')
    .replace('plants.db', ':memory:')
    .replace('postgres://user:password@host/database', POSTGRES_URL ?? '')
    .replaceAll("'localhost.", `'${CERTIFICATE_DIRECTORY}localhost.`)
  const cwd = project ?? (await createProject(t))
  await writeFile(join(cwd, 'main.mjs'), program)
  const child = startChild(t, process.execPath, ['--import', REPORT_LISTENING, 'main.mjs'], {
    cwd,
    env: { ...ENV_WITHOUT_COVERAGE, ...env },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  // What most hosts say of themselves is of no interest.
  child.stdout!.resume()
  const exited = once(child, 'exit').then(() => [])
  const [port] = (await Promise.race([once(child, 'message'), exited])) as [number?]
  assert.ok(port !== undefined, 'the example ends without listening')
  return { port, child }
}
