import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { test } from 'node:test'
import {
  API_DOCUMENTS,
  DOCUMENTS,
  removeCode,
  readDocument,
  README,
  type Document,
} from '../support/package/documents.ts'

const root = new URL('../../', import.meta.url)

/** All documents, including those that the package doesn't contain. */
const ALL_DOCUMENTS = [
  ...DOCUMENTS,
  ...['CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'bench/README.md'].map(readDocument),
]

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

  test(`every table row in ${document.path} belongs to a table with a header`, () => {
    for (const [rows] of removeCode(document).matchAll(/(?:^\|.*\n)+/gm)) assert.match(rows, /^.*\n\|(?: ?-+ ?\|)+\n/)
  })
}

for (const document of DOCUMENTS) {
  test(`${document.path} has unique headings and links only to files in the package`, () => {
    for (const [path] of findLinks(document)) {
      assert.match(path, /^(?:README\.md|LICENSE|docs\/(?:[\w-]+\.md|grafana\.json))$/)
    }
    const anchors = getAnchors(document)
    assert.deepEqual(anchors, [...new Set(anchors)])
  })
}

test('the README links to every page of docs/', () => {
  const linked = findLinks(README).map(([path]) => path)
  for (const { path } of DOCUMENTS) assert.ok(path === 'README.md' || linked.includes(path), path)
})

test('every public module is listed in exports, typesVersions and docs/api', () => {
  const { exports, typesVersions } = JSON.parse(readDocument('package.json').text) as Record<string, { '*': object }>
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))
  const entries = files.map((path) => /@module plant-store(.*)/.exec(readFileSync(`src/${path}`, 'utf8')))
  const modules = entries.flatMap((entry) => (entry === null ? [] : `.${entry[1]!}`)).sort()
  assert.deepEqual([...modules, './package.json'].sort(), Object.keys(exports!).sort())
  assert.deepEqual(modules, ['.', ...Object.keys(typesVersions!['*']).map((name) => `./${name}`)].sort())
  const pages = ['README', ...modules.map((name) => posix.join('plant-store', name))]
  assert.deepEqual(new Set(API_DOCUMENTS.map(({ path }) => path)), new Set(pages.map((page) => `docs/api/${page}.md`)))
})

test('every function in docs/api has an example', () => {
  const functions = API_DOCUMENTS.flatMap(({ text }) => text.split(/^## /m)).filter((section) =>
    /^\w+\(\)\n/.test(section),
  )
  assert.ok(functions.length > 5)
  for (const section of functions) assert.match(section, /^### Example$/m)
})
