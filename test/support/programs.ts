import ts from 'typescript'
import { findCodeBlocks, type CodeBlock, type Document } from './documents.ts'

/** Returns the JavaScript blocks of a document and its TypeScript blocks, without types. */
export function findPrograms(document: Document): CodeBlock[] {
  const { ES2023 } = ts.ScriptTarget
  const compilerOptions = { target: ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true }
  const transpiled = findCodeBlocks(document, 'ts').map((block) => ({
    ...block,
    code: ts.transpileModule(block.code, { compilerOptions }).outputText,
  }))
  return [...findCodeBlocks(document, 'js'), ...transpiled].sort((a, b) => a.line - b.line)
}
