import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import './environment.js'
import type { CleanupScope } from './child-process.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The files that are packed, or that the build needs. */
const SOURCES = ['LICENSE', 'README.md', 'docs', 'package.json', 'src', 'tsconfig.json']

/** The tarball to test instead of a new one, for example before it's published. */
const RELEASE_TARBALL = process.env['TEST_TARBALL']

/** Modules in this folder can import the packages installed in `test/peers` and in the project. */
const PROJECTS_DIRECTORY = join(ROOT, 'test/peers/projects')

/** Exists while a process packs, and contains its process ID. Test files that run concurrently wait for that process. */
const LOCK_FILE = join(PROJECTS_DIRECTORY, 'lock')

/** Folders with the commands of installed packages. */
const COMMAND_DIRECTORIES = ['.', 'test/peers', 'test/tools'].map((path) => join(ROOT, path, 'node_modules/.bin'))

/** The environment of processes that don't run the sources, and that must not report to the runner of these tests. */
export const ENV_WITHOUT_COVERAGE: NodeJS.ProcessEnv = {
  ...process.env,
  NODE_V8_COVERAGE: undefined,
  NODE_TEST_CONTEXT: undefined,
  // The reporter of these tests.
  NODE_OPTIONS: undefined,
  PATH: [dirname(process.execPath), ...COMMAND_DIRECTORIES, process.env['PATH']].join(delimiter),
}

/** Runs a shell script, as a reader of the docs would, and returns its output. */
export async function runScript(script: string, cwd = ROOT, env: NodeJS.ProcessEnv = {}): Promise<string> {
  return (await promisify(execFile)('sh', ['-c', script], { cwd, env: { ...ENV_WITHOUT_COVERAGE, ...env } })).stdout
}

/**
 * Packs the package and installs it, once for each version of the sources. The build happens in a copy, because other
 * tests and processes may be using `dist`.
 * @returns the path of the tarball, and the folder in which it's installed; modules in its subfolders can import the
 *   package
 */
export async function packPackage(): Promise<Readonly<Record<'tarball' | 'folder', string>>> {
  const folder = join(PROJECTS_DIRECTORY, hashFiles(RELEASE_TARBALL === undefined ? SOURCES : [RELEASE_TARBALL]))
  await mkdir(PROJECTS_DIRECTORY, { recursive: true })
  while (!existsSync(folder)) {
    try {
      await writeFile(LOCK_FILE, String(process.pid), { flag: 'wx' })
    } catch {
      await waitForLock()
      continue
    }
    try {
      // The previous lock holder may have created the folder between the check and the lock.
      if (!existsSync(folder)) await packInto(folder)
    } finally {
      await rm(LOCK_FILE, { force: true })
    }
  }
  return { tarball: join(folder, 'plant-store.tgz'), folder }
}

async function waitForLock() {
  const lockHolder = await readFile(LOCK_FILE, 'utf8').catch(() => undefined)
  if (lockHolder === undefined) return
  try {
    process.kill(Number(lockHolder), 0)
    await setTimeout(50)
  } catch {
    // The process was killed while it packed.
    await rm(LOCK_FILE, { force: true })
  }
}

async function packInto(folder: string): Promise<void> {
  for (const name of await readdir(PROJECTS_DIRECTORY)) {
    if (name !== 'lock') await rm(join(PROJECTS_DIRECTORY, name), { recursive: true })
  }
  const temporary = join(PROJECTS_DIRECTORY, 'new')
  const tarball = join(temporary, 'plant-store.tgz')
  await mkdir(join(temporary, 'copy/dist'), { recursive: true })
  if (RELEASE_TARBALL === undefined) {
    const copy = join(temporary, 'copy')
    for (const name of SOURCES) await cp(join(ROOT, name), join(copy, name), { recursive: true })
    // Simulates a leftover of an earlier build.
    await writeFile(join(copy, 'dist/left.js'), '')
    await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
    const filename = await runScript('npm pack --silent --pack-destination ..', copy)
    await rename(join(temporary, filename.trim()), tarball)
  } else await cp(resolve(ROOT, RELEASE_TARBALL), tarball)
  await rm(join(temporary, 'copy'), { recursive: true })
  await installPackage(temporary, './plant-store.tgz')
  await rename(temporary, folder)
}

/** Creates a project in a folder and installs a tarball there, without a registry. Returns what npm prints on stderr. */
export async function installPackage(folder: string, tarball: string): Promise<string> {
  await writeFile(join(folder, 'package.json'), '{"private":true}')
  return runScript(`npm install --offline --no-audit --no-fund '${tarball}' 2>&1 >/dev/null`, folder)
}

/**
 * Creates a project in which the package is installed. The project is deleted when the scope ends.
 * @param files the contents of files to create, by path
 * @returns the folder of the project
 */
export async function createProject(t: CleanupScope, files: Readonly<Record<string, string>> = {}): Promise<string> {
  const project = await mkdtemp(join((await packPackage()).folder, 'project-'))
  t.after(() => rm(project, { recursive: true }))
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(project, path)), { recursive: true })
    await writeFile(join(project, path), text)
  }
  return project
}

/** Returns a digest of files and folders that changes when a file is changed, added or removed. */
function hashFiles(names: readonly string[]): string {
  const digest = createHash('sha256')
  for (const name of names) {
    const isFolder = statSync(resolve(ROOT, name)).isDirectory()
    const paths = isFolder ? readdirSync(resolve(ROOT, name), { recursive: true, encoding: 'utf8' }) : ['']
    for (const path of paths.map((path) => resolve(ROOT, name, path)).filter((path) => statSync(path).isFile())) {
      digest.update(path).update('\0').update(readFileSync(path))
    }
  }
  return digest.digest('hex').slice(0, 16)
}
