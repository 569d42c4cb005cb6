// Builds a single-file executable of the standalone server and Node 26: node src/build/binary.js [server.js] [target]
import { build } from 'esbuild'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const [source = 'dist/server.js', target = 'release/plant-store'] = process.argv.slice(2)

// `node --build-sea` requires Node 26, so older versions run this script again with Node 26 from npm.
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
    // Nothing else in the bundle uses `import.meta.url`: only the server's own code does, to resolve the Postgres
    // driver.
    define: { 'import.meta.url': '__filename' },
    plugins: [{ name: 'adapt-to-executable', setup: adaptToExecutable }],
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
  // Node writes the executable in a single call, which makes the OS cache the file in large blocks. Each process that
  // runs it would then use more memory. A copy is cached in small blocks, so copy the file.
  copyFileSync(join(folder, 'plant-store'), target)
  console.log(`Built ${target} (${Math.round(statSync(target).size / 1e6)} MB), which contains:`)
  console.log(
    `Node ${process.versions.node} (MIT; licenses of its dependencies: github.com/nodejs/node/blob/main/LICENSE)`,
  )
  for (const [name, license] of licensesOf(Object.keys(metafile.inputs))) console.log(`${name} (${license})`)
} finally {
  rmSync(folder, { recursive: true })
}

/** Bundles the Postgres driver into the executable and adds the Node version to the output of `--version`. */
function adaptToExecutable({ onLoad, resolve }) {
  onLoad({ filter: /postgres\/driver\.js$/ }, async ({ path }) => {
    const { errors } = await resolve('pg', { kind: 'require-call', resolveDir: dirname(path) })
    const text = readFileSync(path, 'utf8')
    // esbuild bundles the argument of a plain `require`. If `pg` isn't installed, the executable looks for the driver
    // at run time.
    return { contents: errors.length > 0 ? text : text.replace('createRequire(import.meta.url)', 'require') }
  })
  onLoad({ filter: /command-line\.js$/ }, ({ path }) => {
    const text = readFileSync(path, 'utf8')
    return { contents: text.replace('`${VERSION}\\n`', '`${VERSION} (Node ${process.versions.node})\\n`') }
  })
}

/** Returns the name and the license of each package that contains at least one of the files. */
function licensesOf(files) {
  const licenses = new Map()
  for (const file of files) {
    const path = /^.*node_modules\/(?:@[^/]+\/)?[^/]+\//.exec(file)?.[0] ?? ''
    const { name, license } = JSON.parse(readFileSync(`${path}package.json`, 'utf8'))
    licenses.set(name, license)
  }
  return licenses
}
