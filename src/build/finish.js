// Makes what is published of what the compiler has written to dist: the modules that are reached, without the comments
// that their declarations have; the declarations that are reached; and an entry for require() beside each one for import.
// Everything else is deleted, also what earlier builds have left.
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'
import { commonJsEntry } from './commonjs.js'
import { reachableDeclarations } from './declarations.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { bin, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const entries = Object.values(exports)
  .filter((entry) => typeof entry === 'object')
  .map((entry) => join(root, entry.default.default.replace(/\.js$/, '')))
const programs = Object.values(bin).map((path) => join(root, path))

const declarations = reachableDeclarations(entries.map((path) => `${path}.d.ts`))
const made = new Map(declarations)
for (const path of reachableModules([...entries.map((entry) => `${entry}.js`), ...programs])) {
  made.set(path, indentedByOne(withoutComments(readFileSync(path, 'utf8'))))
}
for (const entry of entries) {
  const values = Object.keys(await import(pathToFileURL(`${entry}.js`)))
  for (const [path, text] of commonJsEntry(entry, values, [...declarations.values()])) made.set(path, text)
}

const dist = join(root, 'dist')
// The page has a build of its own.
const page = join(dist, 'standalone/page/page.')
for (const name of readdirSync(dist, { recursive: true })) {
  const path = join(dist, name)
  if (statSync(path).isFile() && !made.has(path) && !path.startsWith(page)) rmSync(path)
}
for (const [path, text] of made) writeFileSync(path, text)

/** The modules that these import, and themselves. */
function reachableModules(paths) {
  const reached = new Set(paths)
  for (const path of reached) {
    const { importedFiles } = ts.preProcessFile(readFileSync(path, 'utf8'))
    for (const { fileName } of importedFiles) if (fileName.startsWith('.')) reached.add(join(dirname(path), fileName))
  }
  return reached
}

function withoutComments(text) {
  const { ESNext } = ts.ScriptTarget
  const compilerOptions = { target: ESNext, module: ts.ModuleKind.ESNext, removeComments: true }
  return ts.transpileModule(text, { fileName: 'module.js', compilerOptions }).outputText
}

/** The compiler indents by four spaces. One does, and makes the package smaller. What is in a text stays as it is. */
function indentedByOne(text) {
  const inTexts = []
  const visit = (node) => {
    if (ts.isTemplateLiteralToken(node)) inTexts.push({ start: node.getStart(), end: node.end })
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile('module.js', text, ts.ScriptTarget.ESNext, true))
  return text.replace(/^(?: {4})+/gm, (spaces, position) =>
    inTexts.some(({ start, end }) => start < position && position < end) ? spaces : ' '.repeat(spaces.length / 4),
  )
}
