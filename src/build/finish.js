// Completes dist after the compiler has run: inlines the web UI as string constants, adds a CommonJS entry point with
// declarations for each ES module entry point, and deletes every declaration that no entry point needs, and every file
// that no entry point imports, including leftovers of earlier builds.
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { bin, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const entries = Object.values(exports).filter((entry) => typeof entry === 'object')

pruneDeclarations(entries.map((entry) => fromRoot(entry.default.types)))

const reached = new Set(
  [...Object.values(bin), ...entries.flatMap((entry) => Object.values(entry.default))].map(fromRoot),
)
for (const path of reached) {
  for (const [, module] of readFileSync(path, 'utf8').matchAll(/\b(?:from|import) ?\(?["'](\..*?)["']/g)) {
    const target = join(dirname(path), module)
    // Declaration files import each other by the names of the source files, which end in `.ts`.
    reached.add(path.endsWith('.d.ts') ? target.replace(/ts$/, 'd.ts') : target)
  }
}

for (const { default: esm, require } of entries) {
  const module = `./${basename(esm.default)}`
  write(require.default, `module.exports = require('${module}');\n`)
  write(require.types, declarationsOf(module, await import(pathToFileURL(fromRoot(esm.default)))))
}

const page = 'dist/standalone/paths/page/texts.js'
const texts = Object.entries(await import(pathToFileURL(fromRoot(page))))
write(page, texts.map(([name, text]) => `export const ${name} = ${JSON.stringify(text)};\n`).join(''))

const dist = fromRoot('dist')
for (const name of readdirSync(dist, { recursive: true })) {
  const path = join(dist, name)
  if (statSync(path).isFile() && !reached.has(path)) rmSync(path)
}

function fromRoot(path) {
  return join(root, path)
}

function write(target, text) {
  reached.add(fromRoot(target))
  writeFileSync(fromRoot(target), text)
}

/** Removes what the entry points neither export nor need for the types of their exports. */
function pruneDeclarations(paths) {
  const program = ts.createProgram(paths, { module: ts.ModuleKind.NodeNext, types: [] })
  const checker = program.getTypeChecker()
  const needed = new Set()
  const visit = (node) => {
    if (ts.isExportSpecifier(node)) need(checker.getExportSpecifierLocalTargetSymbol(node))
    else if (ts.isIdentifier(node)) need(checker.getSymbolAtLocation(node))
    ts.forEachChild(node, visit)
  }
  const need = (symbol) => {
    if (symbol === undefined || needed.has(symbol)) return
    needed.add(symbol)
    if (symbol.flags & ts.SymbolFlags.Alias) need(checker.getAliasedSymbol(symbol))
    const files = symbol.declarations?.filter((node) => node.getSourceFile().fileName.startsWith(fromRoot('dist/')))
    for (const node of files ?? []) if (!ts.isSourceFile(node) && !ts.isImportSpecifier(node)) visit(node)
  }
  for (const path of paths) {
    checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(path))).forEach(need)
  }

  const isNeeded = ({ name }) => needed.has(checker.getSymbolAtLocation(name))
  for (const file of program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(fromRoot('dist/')))) {
    let text = file.text
    for (const statement of file.statements.toReversed()) {
      const { namedBindings } = statement.importClause ?? {}
      const names = namedBindings?.elements ?? statement.declarationList?.declarations ?? [statement]
      if (ts.isExportDeclaration(statement) || names.every(isNeeded)) continue
      // Comments before imports describe the file.
      const start = namedBindings ? statement.getStart() : statement.pos
      const kept = names.filter(isNeeded).map((name) => name.getText().replace(/^type /, ''))
      const rest =
        kept.length === 0 ? '' : `import type { ${kept.join(', ')} } from ${statement.moduleSpecifier.getText()};`
      text = text.slice(0, start) + rest + text.slice(statement.end)
    }
    writeFileSync(file.fileName, text.replace(/^\n+/gm, ''))
  }
}

/**
 * Returns the declarations of a CommonJS entry point. Node can `require()` an ES module, but TypeScript before 5.8
 * doesn't accept an ES module's declarations in that case. So types are imported with a `resolution-mode` attribute,
 * and values are declared again.
 */
function declarationsOf(module, values) {
  const mode = `with { 'resolution-mode': 'import' };`
  const lines = [`import type * as esm from '${module}' ${mode}`, `export type * from '${module}' ${mode}`]
  for (const [name, value] of Object.entries(values)) {
    lines.push(`export declare const ${name}: typeof esm.${name};`)
    if (String(value).startsWith('class ')) lines.push(`export type ${name} = esm.${name};`)
  }
  return `${lines.join('\n')}\n`
}
