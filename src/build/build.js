// Builds dist: modules without comments, declarations with comments, and the web UI, which is compiled for browsers.
import { execFile } from 'node:child_process'
import { cpSync, readdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'

const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
process.chdir(join(import.meta.dirname, '../..'))

/** `npm run typecheck` checks the types, so the build doesn't. */
const compile = (...args) => promisify(execFile)(process.execPath, [tsc, '--noCheck', ...args])

// Files of an earlier build must not become part of the package.
rmSync('dist', { recursive: true, force: true })
await Promise.all([
  compile('--removeComments', '--declaration', 'false'),
  compile('--project', 'src/web-ui', '--removeComments'),
  // `npm start` needs only the modules; the declarations are for apps that import the package.
  process.env.npm_lifecycle_event !== 'prestart' && compile('--emitDeclarationOnly'),
])
for (const name of readdirSync('src/web-ui').filter((name) => ['.html', '.css'].includes(extname(name)))) {
  cpSync(`src/web-ui/${name}`, `dist/web-ui/${name}`)
}
