import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { posix } from 'node:path'
import { test } from 'node:test'
import { DOCUMENTS, readDocument, type Document } from '../support/documents.ts'

const root = new URL('../../', import.meta.url)

/** All documents, including those that the package doesn't contain. */
const ALL_DOCUMENTS = [
  ...DOCUMENTS,
  ...['CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'bench/README.md'].map(readDocument),
]

/** Returns the text of a document without code blocks, and without brackets in inline code. */
function removeCode({ text }: Document): string {
  return text.replace(/^```.*?^```$/gms, '').replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, ''))
}

/** Returns the relative links in a document, as paths from the root of the repository and anchors. */
function findLinks(document: Document): [path: string, anchor: string | undefined][] {
  const links = removeCode(document).matchAll(/\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]*))?\)/g)
  return Array.from(links, ([, path, anchor]) => [
    path === '' ? document.path : posix.join(posix.dirname(document.path), path!),
    anchor,
  ])
}

/** Returns the anchors that GitHub and npm generate for the headings of a document. */
function getAnchors(document: Document): string[] {
  const headings = removeCode(document).matchAll(/^#+ (.*)$/gm)
  return Array.from(headings, ([, heading]) => {
    const letters = heading!.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '')
    return letters.replace(/\s/g, '-')
  })
}

for (const document of ALL_DOCUMENTS) {
  test(`every link in ${document.path} points to an existing file and heading`, () => {
    for (const [path, anchor] of findLinks(document)) {
      assert.ok(existsSync(new URL(path, root)), path)
      const linked = ALL_DOCUMENTS.find((other) => other.path === path)
      if (anchor !== undefined) assert.ok(linked && getAnchors(linked).includes(anchor), `${path}#${anchor}`)
    }
  })
}

for (const document of DOCUMENTS) {
  test(`${document.path} has unique headings and links only to files in the package`, () => {
    for (const [path] of findLinks(document)) {
      assert.match(path, /^(?:README\.md|LICENSE|docs\/[\w-]+\.md)$/)
    }
    const anchors = getAnchors(document)
    assert.deepEqual(anchors, [...new Set(anchors)])
  })
}

test('the README links to every page of docs/', () => {
  const linked = findLinks(readDocument('README.md')).map(([path]) => path)
  for (const { path } of DOCUMENTS) assert.ok(path === 'README.md' || linked.includes(path), path)
})
