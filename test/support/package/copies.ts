import { build } from 'esbuild'
import { createRequire } from 'node:module'
import { compileFunction, createContext, runInContext } from 'node:vm'

/** Bundles an entry point of the package, so that it shares no modules with the sources or other bundles. */
async function bundle(entry: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    logLevel: 'error',
  })
  return outputFiles[0]!.text
}

/** Loads another copy of the package in this realm. */
export async function loadCopy(entry: string): Promise<unknown> {
  const module = { exports: {} }
  const load = compileFunction(await bundle(entry), ['module', 'exports', 'require']) as (...args: unknown[]) => void
  load(module, module.exports, createRequire(import.meta.url))
  return module.exports
}

/** Loads the package in another realm, which has the globals of JavaScript, but not of Node. */
export async function loadInRealm(entry: string): Promise<{ exports: unknown; evaluate: (code: string) => unknown }> {
  const module = { exports: {} }
  const context = createContext({ module, exports: module.exports, require: createRequire(import.meta.url) })
  const evaluate = (code: string): unknown => runInContext(code, context)
  evaluate(await bundle(entry))
  return { exports: module.exports, evaluate }
}
