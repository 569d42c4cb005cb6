// Packs package.json without `prepare`, because npm warns about the scripts of a package when it's installed. npm runs
// `prepare` only when it installs the package from git, and doesn't run this script then.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

/** The complete package.json, while npm packs the other one. */
const ORIGINAL = '.package.json'

if (existsSync(ORIGINAL)) renameSync(ORIGINAL, 'package.json')

if (process.argv[2] === 'strip') {
  const text = readFileSync('package.json', 'utf8')
  const manifest = JSON.parse(text)
  delete manifest.scripts.prepare
  writeFileSync(ORIGINAL, text)
  writeFileSync('package.json', `${JSON.stringify(manifest, undefined, 2)}\n`)
}
