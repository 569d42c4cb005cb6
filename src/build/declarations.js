import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'

/**
 * Leaves of the declarations what those who import the entries can name or come across.
 * @param entries paths of the declarations that can be imported
 * @returns path → text, for each file of which something is left
 */
export function reachableDeclarations(entries) {
  const files = new Map()

  function open(path) {
    if (!files.has(path)) files.set(path, readDeclarations(path))
    return files.get(path)
  }

  /** Keeps the statements that declare a name, and what they speak of. */
  function keep(file, name) {
    const from = file.imported.get(name)
    if (from !== undefined) {
      file.kept.add(from.specifier)
      if (from.path !== undefined) keepExported(open(from.path), from.name)
    }
    for (const statement of file.declared.get(name) ?? []) keepStatement(file, statement)
  }

  function keepExported(file, name) {
    const from = file.reexported.get(name)
    if (from === undefined) return keep(file, name)
    file.kept.add(from.specifier)
    if (from.path === undefined) keep(file, from.name)
    else keepExported(open(from.path), from.name)
  }

  function keepStatement(file, statement) {
    if (file.kept.has(statement)) return
    file.kept.add(statement)
    visit(statement)

    // A member may have the name of a declaration too. Then that is kept in vain, which does no harm.
    function visit(node) {
      if (ts.isIdentifier(node)) keep(file, node.text)
      ts.forEachChild(node, visit)
    }
  }

  for (const entry of entries) {
    const file = open(entry)
    for (const name of file.reexported.keys()) keepExported(file, name)
    for (const statement of file.source.statements) if (isExported(statement)) keepStatement(file, statement)
  }
  return new Map([...files].map(([path, file]) => [path, textOf(file)]))
}

/** What a file of declarations declares, imports and exports, by the names there. */
function readDeclarations(path) {
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true)
  const file = { source, declared: new Map(), imported: new Map(), reexported: new Map(), kept: new Set() }
  for (const statement of source.statements) {
    const specifiers = specifiersOf(statement)
    if (specifiers === undefined) {
      const declarations = ts.isVariableStatement(statement) ? statement.declarationList.declarations : [statement]
      for (const { name } of declarations) {
        file.declared.set(name.text, [...(file.declared.get(name.text) ?? []), statement])
      }
    } else {
      const names = ts.isImportDeclaration(statement) ? file.imported : file.reexported
      const target = targetOf(statement, path)
      for (const specifier of specifiers) {
        const name = (specifier.propertyName ?? specifier.name).text
        names.set(specifier.name.text, { specifier, name, path: target })
      }
    }
  }
  return file
}

/** The names in the braces of an import or export. */
function specifiersOf(statement) {
  if (ts.isImportDeclaration(statement)) return statement.importClause.namedBindings.elements
  return ts.isExportDeclaration(statement) ? statement.exportClause.elements : undefined
}

/** The declarations that an import or export leads to; undefined if they are none of the package. */
function targetOf({ moduleSpecifier }, path) {
  const module = moduleSpecifier?.text
  return module?.startsWith('.') ? join(dirname(path), module.replace(/ts$/, 'd.ts')) : undefined
}

function isExported(statement) {
  return ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true
}

/** What is kept of a file. Its imports name modules as older compilers expect it. */
function textOf({ source, kept }) {
  const statements = source.statements.map((statement) => {
    if (kept.has(statement)) return statement.getFullText()
    const specifiers = specifiersOf(statement)
    if (specifiers === undefined) return ''
    // Says that the file exports nothing but what says so itself.
    if (specifiers.length === 0) return statement.getFullText()
    const names = specifiers.filter((specifier) => kept.has(specifier)).map((specifier) => specifier.getText())
    if (names.length === 0) return ''
    return statement
      .getFullText()
      .replace(/\{.*\}/s, `{ ${names.join(', ')} }`)
      .replace(/(['"])(\..*)\.ts\1/, '$1$2.js$1')
  })
  return `${statements.join('').trim()}\n`
}
