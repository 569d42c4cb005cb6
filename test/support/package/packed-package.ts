import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { CleanupScope } from '../child-process.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** What goes into the package, and what it is built by. */
const SOURCES = ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'docs', 'package.json', 'src', 'tsconfig.json']

/** The file that is to be published, if that is what is to be tested. */
const RELEASE_TARBALL = process.env['TEST_TARBALL']

/** From here a module finds what `test/peers` has installed, and then what the project itself has. */
const PROJECTS_DIRECTORY = join(ROOT, 'test/peers/projects')

/** Is there while a process packs, and holds its id: test files that run at once wait for the one that packs. */
const LOCK_FILE = join(PROJECTS_DIRECTORY, 'lock')

/** Where commands are found: the Node that runs the tests, and what is installed. */
const COMMAND_DIRECTORIES = ['node_modules/.bin', 'test/peers/node_modules/.bin'].map((path) => join(ROOT, path))
const PATH = [dirname(process.execPath), ...COMMAND_DIRECTORIES, process.env['PATH']].join(delimiter)

/**
 * The environment of what does not run the sources: the coverage of compilers and hosts is of no interest, and large.
 * Nor are tests in it a part of these.
 */
export const ENV_WITHOUT_COVERAGE: NodeJS.ProcessEnv = {
  ...process.env,
  NODE_V8_COVERAGE: undefined,
  NODE_TEST_CONTEXT: undefined,
  PATH,
}

/** Runs a script as a reader of the documents does, and gives what it prints. */
export async function runScript(script: string, cwd = ROOT, env: NodeJS.ProcessEnv = {}): Promise<string> {
  return (await promisify(execFile)('sh', ['-c', script], { cwd, env: { ...ENV_WITHOUT_COVERAGE, ...env } })).stdout
}

/**
 * Packs the package and installs it, once for each state of the sources. All is built elsewhere: other tests and
 * programs may be using `dist`.
 * @returns the path of what `npm pack` made, and the folder in which it is installed; what is in a folder of that one
 *   can import it
 */
export async function packPackage(): Promise<Readonly<Record<'tarball' | 'folder', string>>> {
  const folder = join(PROJECTS_DIRECTORY, hashFiles(RELEASE_TARBALL === undefined ? SOURCES : [RELEASE_TARBALL]))
  const tarball = join(folder, 'plant-store.tgz')
  await mkdir(PROJECTS_DIRECTORY, { recursive: true })
  while (!existsSync(folder)) {
    try {
      await writeFile(LOCK_FILE, String(process.pid), { flag: 'wx' })
    } catch {
      await waitForLock()
      continue
    }
    try {
      for (const name of await readdir(PROJECTS_DIRECTORY)) {
        if (name !== 'lock') await rm(join(PROJECTS_DIRECTORY, name), { recursive: true })
      }
      const temporary = join(PROJECTS_DIRECTORY, 'new')
      await mkdir(temporary)
      if (RELEASE_TARBALL === undefined) await packCopy(temporary)
      else await cp(resolve(ROOT, RELEASE_TARBALL), join(temporary, 'plant-store.tgz'))
      await installPackage(temporary, './plant-store.tgz')
      await rename(temporary, folder)
    } finally {
      await rm(LOCK_FILE, { force: true })
    }
  }
  return { tarball, folder }
}

async function waitForLock() {
  const lockHolder = await readFile(LOCK_FILE, 'utf8').catch(() => undefined)
  if (lockHolder === undefined) return
  try {
    process.kill(Number(lockHolder), 0)
    await setTimeout(50)
  } catch {
    // It was ended while it packed.
    await rm(LOCK_FILE, { force: true })
  }
}

/** Builds and packs a copy of the project. */
async function packCopy(target: string): Promise<void> {
  const copy = join(target, 'copy')
  for (const name of SOURCES) await cp(join(ROOT, name), join(copy, name), { recursive: true })
  // An earlier build may have left what is no longer made.
  await mkdir(join(copy, 'dist/commonjs'), { recursive: true })
  for (const name of ['left.js', 'left.d.ts', 'commonjs/left.d.ts']) await writeFile(join(copy, 'dist', name), '')
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  const filename = await runScript('npm pack --silent --pack-destination ..', copy)
  await rename(join(target, filename.trim()), join(target, 'plant-store.tgz'))
  await rm(copy, { recursive: true })
}

/** Installs a tarball in a folder that is no project yet, without asking a registry. */
export async function installPackage(folder: string, tarball: string): Promise<void> {
  await writeFile(join(folder, 'package.json'), '{"private":true}')
  await runScript(`npm install --offline --no-audit --no-fund '${tarball}'`, folder)
}

/**
 * Makes a project that has the package installed, and these files. It goes with the test.
 * @param files path → text
 * @returns the folder of the project
 */
export async function createProject(t: CleanupScope, files: Readonly<Record<string, string>> = {}): Promise<string> {
  const { folder } = await packPackage()
  const project = await mkdtemp(join(folder, 'project-'))
  t.after(() => rm(project, { recursive: true }))
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(project, path)), { recursive: true })
    await writeFile(join(project, path), text)
  }
  return project
}

/** Changes if a file changes, comes or goes. */
function hashFiles(names: readonly string[]): string {
  const digest = createHash('sha256')
  for (const name of names) {
    for (const file of listFiles(resolve(ROOT, name))) digest.update(file).update('\0').update(readFileSync(file))
  }
  return digest.digest('hex').slice(0, 16)
}

function listFiles(path: string): string[] {
  if (statSync(path).isFile()) return [path]
  const entries = readdirSync(path, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}
