import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { skipUnlessNode24 } from './skip-reasons.ts'

const PEERS_DIRECTORY = new URL('../peers/', import.meta.url)
const TOOLS_DIRECTORY = new URL('../tools/', import.meta.url)
const MANIFEST = JSON.parse(readFileSync(new URL('package.json', PEERS_DIRECTORY), 'utf8')) as Record<string, object>

/** The names of the packages that are installed in `test/peers`. */
export const PEERS: readonly string[] = Object.keys(MANIFEST['dependencies']!)

/** With TEST_REQUIRE_ALL=1, the tests fail on Node 24 if the packages aren't installed. */
function skipUnlessInstalled(directory: URL, script: string): string | false {
  const isRequired = process.env['TEST_REQUIRE_ALL'] === '1' && skipUnlessNode24 === false
  if (isRequired || existsSync(new URL('node_modules', directory))) return false
  return `test/${script} is not installed; run "npm run ${script}"`
}

/**
 * Creates a function that imports a package from a folder. Its caller declares the exports that it uses, because lint and
 * the type check have to work without the package.
 */
function importFrom(directory: URL) {
  const { resolve } = createRequire(directory)
  return async <Exports>(name: string) => (await import(pathToFileURL(resolve(name)).href)) as Exports
}

/** The skip reason for tests that need the packages in `test/peers`, or false to run them. */
export const skipWithoutPeers: string | false = skipUnlessInstalled(PEERS_DIRECTORY, 'peers')

/** The skip reason for tests that need the packages in `test/tools`, or false to run them. */
export const skipWithoutTools: string | false = skipUnlessInstalled(TOOLS_DIRECTORY, 'tools')

/** Imports a package that is installed in `test/peers`. */
export const importPeer = importFrom(PEERS_DIRECTORY)

/** Imports a package that is installed in `test/tools`. */
export const importTool = importFrom(TOOLS_DIRECTORY)
