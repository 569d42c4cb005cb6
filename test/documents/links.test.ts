import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { posix } from 'node:path'
import { suite, test } from 'node:test'
import { DOCUMENTS, proseOf, readDocument, README, type Document } from '../support/package/documents.ts'

const root = new URL('../../', import.meta.url)

/** What is not packed is linked too. */
const ALL = [...DOCUMENTS, ...['CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'].map(readDocument)]

/** The targets of the links of a document that lead to no other site. */
function linksOf(document: Document): string[] {
  const targets = [...proseOf(document).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!)
  return targets.filter((target) => !/^[a-z]+:/.test(target))
}

/** The path that a link leads to, seen from the root of the repository. */
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
  if (!existsSync(new URL(path, root))) return false
  if (anchor === undefined) return true
  const linked = ALL.find((other) => other.path === path)
  return linked !== undefined && anchorsOf(linked).includes(anchor)
}

suite('every link of a document leads to a file, and to a heading of it', () => {
  for (const document of ALL) {
    test(document.path, () => {
      assert.deepEqual(
        linksOf(document).filter((target) => !isSound(document, target)),
        [],
      )
    })
  }
})

test('every link leads to what is packed', () => {
  for (const document of DOCUMENTS) {
    const paths = linksOf(document).map((target) => pathOf(document, target))
    assert.deepEqual(
      paths.filter((path) => !/^(?:README\.md|LICENSE|docs\/(?:[\w-]+\.md|grafana\.json))$/.test(path)),
      [],
      document.path,
    )
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
  const pages = DOCUMENTS.filter((document) => document !== README)
  assert.deepEqual(
    pages.filter(({ path }) => !linked.has(path)),
    [],
  )
})
