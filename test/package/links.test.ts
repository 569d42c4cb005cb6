import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { posix } from 'node:path'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { DOCUMENTS, proseOf, README, type Document } from '../support/documents.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The documents and the sources of the package; what a build makes of them is left out. */
const packed = (
  JSON.parse(
    execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  ) as [{ files: { path: string }[] }]
)[0].files.map(({ path }) => path)

/** The targets of the links of a document that lead to no other site. */
function linksOf(document: Document): string[] {
  const targets = [...proseOf(document).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!)
  return targets.filter((target) => !/^[a-z]+:/.test(target))
}

/** The path that a link leads to, seen from the root of the package. */
function pathOf(document: Document, target: string): string {
  const [path] = target.split('#', 1)
  return path === '' ? document.path : posix.join(posix.dirname(document.path), path!)
}

/** The anchors that GitHub and npm make of the headings of a document. */
function anchorsOf(document: Document): string[] {
  const headings = [...proseOf(document).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading!)
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-'),
  )
}

function isSound(document: Document, target: string): boolean {
  const path = pathOf(document, target)
  const [, anchor] = target.split('#')
  if (!packed.includes(path)) return false
  if (anchor === undefined) return true
  const linked = DOCUMENTS.find((other) => other.path === path)
  return linked !== undefined && anchorsOf(linked).includes(anchor)
}

suite('every link of a document leads to a file of the package, and to a heading of it', () => {
  for (const document of DOCUMENTS) {
    test(document.path, () => {
      assert.deepEqual(
        linksOf(document).filter((target) => !isSound(document, target)),
        [],
      )
    })
  }
})

test('no document has the same heading twice', () => {
  for (const document of DOCUMENTS) {
    const anchors = anchorsOf(document)
    assert.deepEqual(anchors, [...new Set(anchors)], document.path)
  }
})

test('the README leads to every page of docs/', () => {
  const linked = new Set(linksOf(README).map((target) => pathOf(README, target)))
  const pages = packed.filter((path) => path.startsWith('docs/'))
  assert.deepEqual(
    pages.filter((path) => !linked.has(path)),
    [],
  )
  assert.deepEqual(
    pages.filter((path) => path.endsWith('.md')),
    DOCUMENTS.map(({ path }) => path).filter((path) => path !== 'README.md'),
  )
})
