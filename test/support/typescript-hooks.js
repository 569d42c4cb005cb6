import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Holds the code of each file by a digest of its text. */
const CACHE = new URL('../../node_modules/.cache/typescript/', import.meta.url)

/** The code of a file of TypeScript. Its types are not checked. */
export async function compile(url) {
  const text = readFileSync(new URL(url), 'utf8')
  const cached = new URL(createHash('sha256').update(text).digest('hex'), CACHE)
  try {
    return readFileSync(cached, 'utf8')
  } catch {
    const { default: ts } = await import('typescript')
    const compilerOptions = { target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, inlineSourceMap: true }
    const { outputText } = ts.transpileModule(text, {
      compilerOptions: { ...compilerOptions, verbatimModuleSyntax: true },
      fileName: fileURLToPath(url),
    })
    mkdirSync(CACHE, { recursive: true })
    // Another process may be reading it.
    const temporary = new URL(`${cached.href}.${process.pid}`)
    writeFileSync(temporary, outputText)
    renameSync(temporary, cached)
    return outputText
  }
}

export async function load(url, context, nextLoad) {
  if (!/^file:.*\.ts$/.test(url) || url.includes('/node_modules/')) return nextLoad(url, context)
  return { format: 'module', source: await compile(url), shortCircuit: true }
}
