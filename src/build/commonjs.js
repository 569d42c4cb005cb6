import { basename } from 'node:path'

/**
 * The entry for require(), and its declarations. Node itself can require() an ES module, but a compiler before
 * TypeScript 5.8 refuses the types of one. Types are those of the ES module; each value is declared once more.
 * @param path the entry for import, without its extension
 * @param values the names of its values
 * @param declarations all texts in which they may be declared
 * @returns path → text
 */
export function commonJsEntry(path, values, declarations) {
  const module = `./${basename(path)}.js`
  const mode = `with { 'resolution-mode': 'import' };`
  const lines = [`import type * as esm from '${module}' ${mode}`, `export type * from '${module}' ${mode}`]
  for (const name of values) {
    const { comment, isClass } = findDeclaration(name, declarations)
    lines.push(`${comment}export declare const ${name}: typeof esm.${name};`)
    if (isClass) lines.push(`export type ${name} = esm.${name};`)
  }
  return new Map([
    [`${path}.cjs`, `module.exports = require('${module}');\n`],
    [`${path}.d.cts`, `${lines.join('\n')}\n`],
  ])
}

function findDeclaration(name, declarations) {
  const pattern = new RegExp(`((?:/\\*\\*(?:(?!\\*/).)*\\*/\\n)?)export declare (const|function|class) ${name}\\b`, 's')
  const found = declarations.map((text) => pattern.exec(text)).find((match) => match !== null)
  if (found === undefined) throw new Error(`nothing declares ${name}`)
  return { comment: found[1], isClass: found[2] === 'class' }
}
