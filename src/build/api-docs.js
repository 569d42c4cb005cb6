// Writes docs/api.md, or the file that is named, from the doc comments of all that the package exports. Fails if one is
// missing, or leads nowhere.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Application, LogLevel } from 'typedoc'

const target = resolve(process.argv[2] ?? fileURLToPath(new URL('../../docs/api.md', import.meta.url)))
const root = fileURLToPath(new URL('../..', import.meta.url))
// The compiler's own files are found from here.
process.chdir(root)

const { name: packageName, exports } = JSON.parse(readFileSync('package.json', 'utf8'))
/** The source of each module that is exported, by the name that it is imported by. */
const modules = new Map()
for (const [path, entry] of Object.entries(exports)) {
  if (typeof entry === 'object') modules.set(join(packageName, path), sourceOf(entry.default.default))
}

const pages = mkdtempSync(join(tmpdir(), 'plant-store-api-'))
try {
  if (await writePages()) writeFileSync(target, mergePages())
  else process.exitCode = 1
} finally {
  rmSync(pages, { recursive: true })
}

function sourceOf(path) {
  return path.replace('dist/', 'src/').replace(/js$/, 'ts')
}

/** Writes a page for each module; false if something is wrong, which is printed. */
async function writePages() {
  const application = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: [...modules.values()],
    logLevel: LogLevel.Warn,
    // The compiler does that, and here it would take most of the time.
    skipErrorChecking: true,
    validation: { notDocumented: true, notExported: true, invalidLink: true },
    requiredToBeDocumented: ['Class', 'Interface', 'TypeAlias', 'Function', 'Variable', 'Property', 'Method'],
    out: pages,
    // The first two have the shape of OpenAPI 3.1. The README lists the codes of errors.
    intentionallyNotExported: ['Description', 'PlantPaths', 'ERRORS', 'ErrorName'],
    readme: 'none',
    disableSources: true,
    excludeExternals: true,
    sort: ['source-order'],
    groupOrder: ['Functions', 'Classes', 'Interfaces', 'Type Aliases', 'Variables'],
    outputFileStrategy: 'modules',
    hideBreadcrumbs: true,
    hidePageHeader: true,
    hideGroupHeadings: true,
    parametersFormat: 'table',
    propertiesFormat: 'table',
    typeDeclarationFormat: 'table',
    useCodeBlocks: true,
    useHTMLAnchors: true,
    tableColumnSettings: { hideInherited: true, hideModifiers: true, hideOverrides: true, hideSources: true },
  })
  const project = await application.convert()
  application.validate(project)
  await application.generateOutputs(project)
  return !application.logger.hasErrors() && !application.logger.hasWarnings()
}

/** All pages as one, in the order of package.json. */
function mergePages() {
  const names = [...modules.keys()]
  const contents = names.map((name) => `- [${name}](#${basename(name)})`)
  const intro = `# API

All that the package exports. \`npm run api-docs\` writes this page from the doc comments, which editors show too.

${contents.join('\n')}
`
  return [intro, ...names.map((name) => mergePage(name))].join('\n')
}

function mergePage(module) {
  const text = readFileSync(join(pages, `${module}.md`), 'utf8')
    // A heading has six levels.
    .replace(/^#{1,5} /gm, '#$&')
    .replace(/(?<=<a id=")[^"]*/g, (id) => anchorOf(module, id))
    .replace(/\]\(([^)#]*)#([^)]*)\)/g, (_, page, id) => `](#${anchorOf(page === '' ? module : moduleOf(page), id)})`)
    .replace(/ +$/gm, '')
  return `<a id="${basename(module)}"></a>\n\n${text}`
}

function moduleOf(page) {
  return [...modules.keys()].find((name) => basename(name) === basename(page, '.md'))
}

/** Each page numbers its anchors for itself. */
function anchorOf(module, id) {
  return `${basename(module)}.${id}`
}
