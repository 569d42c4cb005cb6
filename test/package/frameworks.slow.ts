import { suite, test } from 'node:test'
import { readDocument } from '../support/documents.ts'
import { findPrograms } from '../support/programs.ts'
import { getMountPath, getSkipReason } from '../support/examples.ts'
import { checkFramework, toFramework } from './check-framework.ts'

/** Examples that aren't complete programs start with a comment. The slow tests run Next.js. */
const EXAMPLES = findPrograms(readDocument('docs/frameworks.md')).filter(
  ({ heading, code }) => !code.startsWith('// ') && heading !== 'Next.js',
)

suite('docs/frameworks.md', () => {
  for (const { heading, code, line } of EXAMPLES) {
    const express4 = code.replace("'express'", "'express-4'")
    const programs = { [`${heading}, line ${line}`]: code, ...(express4 !== code && { 'Express 4': express4 }) }
    for (const [name, program] of Object.entries(programs)) {
      const options = { skip: getSkipReason(program), timeout: 60_000 }
      test(name, options, (t) => checkFramework(t, toFramework(name, program, getMountPath(program))))
    }
  }
})
