// Loads the JavaScript that was made of TypeScript, and that of a mutant in the place of its file. Where they are stands
// in the query of this module's URL, which a program that a test starts has from the test.
import { existsSync, readFileSync } from 'node:fs'
import module, { createRequire } from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const query = new URL(import.meta.url).searchParams

// Older versions of Node load in a thread of their own, which takes time to start.
if (module.registerHooks !== undefined) module.registerHooks({ load })
else if (isMainThread) module.register(import.meta.url)

export function load(url, context, nextLoad) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return nextLoad(url, context)
  const file = relative(ROOT, fileURLToPath(url))
  const path = `${query.get('folder')}/${file === query.get('mutant') ? 'mutant' : file}.js`
  const source = existsSync(path) ? readFileSync(path, 'utf8') : transpile(fileURLToPath(url))
  return { format: 'module', source, shortCircuit: true }
}

/** A test may write a module and import it. */
function transpile(file) {
  const ts = createRequire(import.meta.url)('typescript')
  const compilerOptions = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext }
  return ts.transpileModule(readFileSync(file, 'utf8'), { compilerOptions }).outputText
}
