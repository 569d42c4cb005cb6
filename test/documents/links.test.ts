import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { test } from 'node:test'
import {
  API_DOCUMENTS,
  DOCUMENTS,
  readMarkdownFiles,
  removeCode,
  readDocument,
  README,
  type Document,
} from '../support/package/documents.ts'
import { runScript } from '../support/package/packed-package.ts'
import { createTempDirectory } from '../support/temp-files.ts'

const root = new URL('../../', import.meta.url)

/** What is not packed is read too. */
const ALL_DOCUMENTS = [
  ...DOCUMENTS,
  ...['CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'bench/README.md'].map(readDocument),
]

/** The links of a document that lead to no other site: the path, seen from the root of the repository, and the anchor. */
function findLinks(document: Document): [path: string, anchor: string | undefined][] {
  const links = removeCode(document).matchAll(/\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]*))?\)/g)
  return Array.from(links, ([, path, anchor]) => [
    path === '' ? document.path : posix.join(posix.dirname(document.path), path!),
    anchor,
  ])
}

/** The anchors that GitHub and npm make of the headings of a document. */
function getAnchors(document: Document): string[] {
  const headings = removeCode(document).matchAll(/^#+ (.*)$/gm)
  return Array.from(headings, ([, heading]) => {
    const letters = heading!.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '')
    return letters.replace(/\s/g, '-')
  })
}

for (const document of ALL_DOCUMENTS) {
  test(`every link of ${document.path} leads to a file, and to a heading of it`, () => {
    for (const [path, anchor] of findLinks(document)) {
      assert.ok(existsSync(new URL(path, root)), path)
      const linked = ALL_DOCUMENTS.find((other) => other.path === path)
      if (anchor !== undefined) assert.ok(linked && getAnchors(linked).includes(anchor), `${path}#${anchor}`)
    }
  })

  test(`every row of ${document.path} is in a table, which a blank line would end`, () => {
    for (const [rows] of removeCode(document).matchAll(/(?:^\|.*\n)+/gm)) assert.match(rows, /^.*\n\|(?: ?-+ ?\|)+\n/)
  })
}

for (const document of DOCUMENTS) {
  test(`${document.path} leads only to what is packed, and has no heading twice`, () => {
    for (const [path] of findLinks(document)) {
      assert.match(path, /^(?:README\.md|LICENSE|docs\/(?:[\w-]+\.md|grafana\.json))$/)
    }
    const anchors = getAnchors(document)
    assert.deepEqual(anchors, [...new Set(anchors)])
  })
}

test('the README leads to every page of docs/', () => {
  const linked = findLinks(README).map(([path]) => path)
  for (const { path } of DOCUMENTS) assert.ok(path === 'README.md' || linked.includes(path), path)
})

// It fails if a public name lacks a doc comment, or a link of one leads nowhere.
test('docs/api says what the doc comments say', async (t) => {
  const made = createTempDirectory(t)
  await runScript(`typedoc --out '${made}'`)
  assert.deepEqual(readMarkdownFiles(made), readMarkdownFiles('docs/api'), 'docs/api is not current: npm run api-docs')
})

test('every module of the sources is exported, to compilers without `exports` too, and has its page', () => {
  const { exports, typesVersions } = JSON.parse(readDocument('package.json').text) as Record<string, { '*': object }>
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))
  const entries = files.map((path) => /@module plant-store(.*)/.exec(readFileSync(`src/${path}`, 'utf8')))
  const modules = entries.flatMap((entry) => (entry === null ? [] : `.${entry[1]!}`)).sort()
  assert.deepEqual([...modules, './package.json'].sort(), Object.keys(exports!).sort())
  assert.deepEqual(modules, ['.', ...Object.keys(typesVersions!['*']).map((name) => `./${name}`)].sort())
  const pages = ['README', ...modules.map((name) => posix.join('plant-store', name))]
  assert.deepEqual(new Set(API_DOCUMENTS.map(({ path }) => path)), new Set(pages.map((page) => `docs/api/${page}.md`)))
})

test('every function of docs/api has an example', () => {
  const functions = API_DOCUMENTS.flatMap(({ text }) => text.split(/^## /m)).filter((section) =>
    /^\w+\(\)\n/.test(section),
  )
  assert.ok(functions.length > 5)
  for (const section of functions) assert.match(section, /^### Example$/m)
})
