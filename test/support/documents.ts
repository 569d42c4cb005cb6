import { readdirSync, readFileSync } from 'node:fs'

const root = new URL('../..', import.meta.url)

/** A Markdown file. The path is relative to the root of the repository. */
export type Document = Readonly<Record<'path' | 'text', string>>

/** A code block of a document, with its heading and the line on which it starts. */
export type CodeBlock = Readonly<Record<'language' | 'code' | 'heading', string>> & { readonly line: number }

/** Reads a Markdown file, and removes the spaces with which Prettier aligns tables, because tests match the rows. */
export function readDocument(path: string): Document {
  const text = readFileSync(new URL(path, root), 'utf8')
  return { path, text: text.replace(/^\|.*\|$/gm, (row) => row.replace(/ {2,}/g, ' ')) }
}

/** The README and the pages in docs/. */
export const DOCUMENTS: readonly Document[] = [
  readDocument('README.md'),
  ...readdirSync(new URL('docs/', root))
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => readDocument(`docs/${name}`)),
]

const CODE_BLOCK = /^```(\w+)\n(.*?)^```$/gms

/** Returns the code blocks of a document, in all languages by default. */
export function findCodeBlocks({ text }: Document, language?: string): CodeBlock[] {
  const blocks = [...text.matchAll(CODE_BLOCK)].map(({ index, 1: name, 2: code }) => {
    const before = text.slice(0, index)
    const heading = /^#+ (.*)$/.exec(before.split('\n').findLast((line) => line.startsWith('#'))!)![1]!
    return { language: name!, code: code!, line: before.split('\n').length, heading }
  })
  return language === undefined ? blocks : blocks.filter((block) => block.language === language)
}

/** Returns the code of the nth block in a language, counted from 0, under the given heading or under any heading. */
export function getCode(path: string, language: string, heading?: string, n = 0): string {
  const blocks = findCodeBlocks(readDocument(path), language)
  return blocks.filter((block) => heading === undefined || block.heading === heading)[n]!.code
}
