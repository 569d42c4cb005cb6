// Loads the JavaScript that was made of TypeScript, and that of a mutant in the place of its file. Where they are stands
// in the query of this module's URL, which a program that a test starts has from the test.
import { readFileSync } from 'node:fs'
import { register } from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const query = new URL(import.meta.url).searchParams

if (isMainThread) register(import.meta.url)

export function load(url, context, nextLoad) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return nextLoad(url, context)
  const file = relative(ROOT, fileURLToPath(url))
  const path = file === query.get('mutant') ? 'mutant' : file
  const source = readFileSync(`${query.get('folder')}/${path}.js`, 'utf8')
  return { format: 'module', source, shortCircuit: true }
}
