// The web UI's files, compiled when this module is loaded, so that development and tests always use the current
// sources.
// In dist/, the build replaces this module with the compiled files, because the package contains no sources and no
// compiler.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

export const HTML: string = readFileSync(pathOf('page.html'), 'utf8').replace(/^ +/gm, '')
export const STYLE: string = compileSource('page.css')
export const SCRIPT: string = compileSource('page.ts')

/**
 * Runs esbuild with piped stdio. If the child process inherited stderr, our own writes to stderr would block until they
 * are read.
 */
function compileSource(name: string): string {
  const esbuild = createRequire(import.meta.url).resolve('esbuild/bin/esbuild')
  const args = [pathOf(name), '--bundle', '--format=esm', '--target=es2023', '--minify', '--charset=utf8']
  return execFileSync(esbuild, args, { stdio: 'pipe', encoding: 'utf8' })
}

/**
 * Returns the path of a source file. The build imports this module from dist/, where the relative path is the same,
 * because dist/ is as deep as src/.
 */
function pathOf(name: string): string {
  return fileURLToPath(new URL(`../../../../src/standalone/paths/page/browser/${name}`, import.meta.url))
}
