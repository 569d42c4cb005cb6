// An ESLint rule that reports each relative import whose file imports the importing file again, directly or through
// other files. Type imports count too, because files that need each other's types can only be understood together.
import { readFileSync, statSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'

/** The imports of each file by its URL, with its modification time, because editors keep ESLint running. */
const cache = new Map()

/** Returns the URLs of all relative imports in a text. */
function findImports(text, url) {
  const targets = []
  const visit = (node) => {
    const isDynamic = node.expression?.kind === ts.SyntaxKind.ImportKeyword
    const specifier = node.moduleSpecifier ?? node.argument?.literal ?? (isDynamic ? node.arguments[0] : undefined)
    if (specifier?.text?.startsWith('.')) targets.push(new URL(specifier.text, url).href)
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(url, text, ts.ScriptTarget.Latest))
  return targets
}

/** Returns the URLs of all relative imports in a file. Folders and missing files have none. */
function readImports(url) {
  const stats = statSync(new URL(url), { throwIfNoEntry: false })
  if (!stats?.isFile()) return []
  const { mtimeMs } = stats
  if (cache.get(url)?.mtimeMs !== mtimeMs)
    cache.set(url, { mtimeMs, targets: findImports(readFileSync(new URL(url), 'utf8'), url) })
  return cache.get(url).targets
}

/** Returns the shortest chain of imports from one file to another, or undefined if there is none. */
function findChain(from, to) {
  const chains = new Map([[from, [from]]])
  // The loop also visits the entries that it adds.
  for (const [url, chain] of chains) {
    if (url === to) return chain
    for (const target of readImports(url)) if (!chains.has(target)) chains.set(target, [...chain, target])
  }
  return undefined
}

const IMPORTS = 'ImportDeclaration, ExportNamedDeclaration, ExportAllDeclaration, ImportExpression, TSImportType'

export default {
  create: (context) => ({
    [IMPORTS]({ source }) {
      if (typeof source?.value !== 'string' || !source.value.startsWith('.')) return
      const url = pathToFileURL(context.filename).href
      const chain = findChain(new URL(source.value, url).href, url)
      if (chain === undefined) return
      const paths = [url, ...chain].map((file) => relative(context.cwd, fileURLToPath(file)))
      context.report({ node: source, message: `Import cycle: ${paths.join(' → ')}` })
    },
  }),
}
