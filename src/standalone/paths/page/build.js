// Builds the page into dist, unless it is current: its script by the compiler, the rest as it is. `npm run typecheck`
// checks its types; here that would take longest, and `npm start` waits for this.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const sources = join(root, 'src/standalone/paths/page/browser')
const target = join(root, 'dist/standalone/paths/page')

if (!isCurrent()) {
  const temporary = mkdtempSync(join(tmpdir(), 'plant-store-page-'))
  try {
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const command = [tsc, '--project', sources, '--outDir', temporary, '--noCheck']
    const { status, error } = spawnSync(process.execPath, command, { stdio: 'inherit' })
    if (error !== undefined) throw error
    process.exitCode = status ?? 1
    if (status === 0) {
      mkdirSync(target, { recursive: true })
      put(temporary, 'page.js')
      put(sources, 'page.html')
      put(sources, 'page.css')
    }
  } finally {
    rmSync(temporary, { recursive: true })
  }
}

/** Whether each file of the page is younger than all that it is made of. */
function isCurrent() {
  const made = ['page.js', 'page.html', 'page.css'].map((name) => lastChange(join(target, name)))
  const given = [fileURLToPath(import.meta.url), join(root, 'tsconfig.json'), sources]
  for (const name of readdirSync(sources)) given.push(join(sources, name))
  return Math.min(...made) > Math.max(...given.map(lastChange))
}

function lastChange(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

/** Indentation is for those who read the sources. */
function put(directory, name) {
  writeFileSync(join(target, name), readFileSync(join(directory, name), 'utf8').replace(/^ +/gm, ''))
}
