// Makes one file of the program and Node 26: node src/build/binary.js [server.js] [target]
import { build } from 'esbuild'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const [source = 'dist/server.js', target = 'release/plant-store'] = process.argv.slice(2)

// Before Node 26 it takes another tool to make an executable.
if (Number.parseInt(process.versions.node) < 26) {
  const node = `node-${process.platform.replace('win32', 'win')}-${process.arch}@26`
  const command = ['exec', '--yes', `--package=${node}`, '--', 'node', import.meta.filename, source, target]
  process.exit(spawnSync('npm', command, { stdio: 'inherit' }).status ?? 1)
}

const folder = mkdtempSync(join(tmpdir(), 'plant-store-binary-'))
try {
  const { metafile } = await build({
    entryPoints: [source],
    outfile: join(folder, 'server.cjs'),
    bundle: true,
    platform: 'node',
    format: 'cjs',
    external: ['pg-native'],
    // Only the program itself asks where it is, to find the driver.
    define: { 'import.meta.url': '__filename' },
    plugins: [{ name: 'changes', setup: change }],
    logLevel: 'error',
    metafile: true,
  })
  const execArgv = ['--max-semi-space-size=16']
  const options = {
    main: 'server.cjs',
    output: 'plant-store',
    execArgv,
    disableExperimentalSEAWarning: true,
    useCodeCache: true,
  }
  writeFileSync(join(folder, 'sea.json'), JSON.stringify(options))
  const { status, stderr } = spawnSync(process.execPath, ['--build-sea', 'sea.json'], { cwd: folder, encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  mkdirSync(dirname(target), { recursive: true })
  // Node writes it at once, so the system caches it in large pieces, and each process that runs it would take more memory.
  copyFileSync(join(folder, 'plant-store'), target)
  console.log(`${target} has ${Math.round(statSync(target).size / 1e6)} MB, and holds`)
  console.log(
    `Node ${process.versions.node} (MIT, and the licenses of its parts: github.com/nodejs/node/blob/main/LICENSE)`,
  )
  for (const [name, license] of licensesOf(Object.keys(metafile.inputs))) console.log(`${name} (${license})`)
} finally {
  rmSync(folder, { recursive: true })
}

/** Changes what an executable cannot do, or has to say. */
function change({ onLoad, resolve }) {
  onLoad({ filter: /postgres\/driver\.js$/ }, async ({ path }) => {
    const { errors } = await resolve('pg', { kind: 'require-call', resolveDir: dirname(path) })
    const text = readFileSync(path, 'utf8')
    // The program looks for the driver when it needs it.
    return { contents: errors.length > 0 ? text : text.replace('createRequire(import.meta.url)', 'require') }
  })
  onLoad({ filter: /command-line\.js$/ }, ({ path }) => {
    const text = readFileSync(path, 'utf8')
    return { contents: text.replace('`${VERSION}\\n`', '`${VERSION} (Node ${process.versions.node})\\n`') }
  })
}

/** The packages that have these files, with their licenses. */
function licensesOf(files) {
  const licenses = new Map()
  for (const file of files) {
    const path = /^.*node_modules\/(?:@[^/]+\/)?[^/]+\//.exec(file)?.[0] ?? ''
    const { name, license } = JSON.parse(readFileSync(`${path}package.json`, 'utf8'))
    licenses.set(name, license)
  }
  return licenses
}
