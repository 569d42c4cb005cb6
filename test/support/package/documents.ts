import { readdirSync, readFileSync } from 'node:fs'
import ts from 'typescript'

const root = new URL('../../..', import.meta.url)

/** A document for users; its path is seen from the root of the repository. */
export type Document = Readonly<Record<'path' | 'text', string>>

/** A piece of code that a document shows, the heading that it stands under, and the line on which it begins. */
export type Block = Readonly<Record<'language' | 'code' | 'heading', string>> & { readonly line: number }

export function readDocument(path: string): Document {
  return { path, text: readFileSync(new URL(path, root), 'utf8') }
}

/** The texts of the pages of a folder and of the folders in it, by their names. */
export function pagesIn(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))
  return Object.fromEntries(names.sort().map((name) => [name, readFileSync(`${folder}/${name}`, 'utf8')]))
}

export const README: Document = readDocument('README.md')

/** The pages that are made of the doc comments. */
export const API: readonly Document[] = Object.keys(pagesIn('docs/api')).map((name) => readDocument(`docs/api/${name}`))

/** What else a user gets to read: the README and the other pages of docs/. */
export const DOCUMENTS: readonly Document[] = [
  README,
  ...readdirSync(new URL('docs/', root))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => readDocument(`docs/${name}`)),
]

const BLOCK = /^```(\w+)\n(.*?)^```$/gms

/** The code that a document shows, in a language or in all. */
export function blocksOf({ text }: Document, language?: string): Block[] {
  const blocks = [...text.matchAll(BLOCK)].map(({ index, 1: name, 2: code }) => {
    const before = text.slice(0, index)
    const heading = /^#+ (.*)$/.exec(before.split('\n').findLast((line) => line.startsWith('#'))!)![1]!
    return { language: name!, code: code!, line: before.split('\n').length, heading }
  })
  return language === undefined ? blocks : blocks.filter((block) => block.language === language)
}

/** The n-th code that a document shows in a language, under a heading or under any. */
export function codeOf(path: string, language: string, heading?: string, n = 0): string {
  const blocks = blocksOf(readDocument(path), language)
  return blocks.filter((block) => heading === undefined || block.heading === heading)[n]!.code
}

/** The code in JavaScript that a document shows, and that in TypeScript with its types erased. */
export function programsOf(document: Document): Block[] {
  const { ES2023 } = ts.ScriptTarget
  const compilerOptions = { target: ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true }
  const erased = blocksOf(document, 'ts').map((block) => ({
    ...block,
    code: ts.transpileModule(block.code, { compilerOptions }).outputText,
  }))
  return [...blocksOf(document, 'js'), ...erased].sort((a, b) => a.line - b.line)
}

/** The text of a document without the code that it shows. */
export function proseOf({ text }: Document): string {
  return text.replace(BLOCK, '').replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, ''))
}
