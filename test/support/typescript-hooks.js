import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

/** Contains the compiled code of each file, by a digest of its source. */
const CACHE_DIRECTORY = new URL(`../../node_modules/.cache/typescript/${process.version}/`, import.meta.url)

/** Removes types. Node's own type stripping keeps the positions of all other code, which coverage relies on. */
function stripTypes(text, path) {
  if (module.stripTypeScriptTypes === undefined) return transpile(text, path)
  try {
    return module.stripTypeScriptTypes(text)
  } catch (cause) {
    throw new SyntaxError(`${path}: ${cause.message}`, { cause })
  }
}

function transpile(text, fileName) {
  const ts = module.createRequire(import.meta.url)('typescript')
  const { ESNext } = ts.ScriptTarget
  const preserveModules = { target: ESNext, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true }
  return ts.transpileModule(text, { compilerOptions: { ...preserveModules, inlineSourceMap: true }, fileName })
    .outputText
}

/** Compiles a TypeScript file without checking its types. */
export function compile(url) {
  const text = readFileSync(new URL(url), 'utf8')
  const cacheFile = new URL(createHash('sha256').update(text).digest('hex'), CACHE_DIRECTORY)
  if (existsSync(cacheFile)) return readFileSync(cacheFile, 'utf8')
  const code = stripTypes(text, fileURLToPath(url))
  mkdirSync(CACHE_DIRECTORY, { recursive: true })
  // Written to a temporary file and renamed, because another process could be reading the cache file.
  const temporary = new URL(`${cacheFile.href}.${process.pid}`)
  writeFileSync(temporary, code)
  renameSync(temporary, cacheFile)
  return code
}

export function load(url, context, nextLoad) {
  if (!/^file:.*\.ts$/.test(url) || url.includes('/node_modules/')) return nextLoad(url, context)
  return { format: 'module', source: compile(url), shortCircuit: true }
}
