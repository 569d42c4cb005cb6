// The texts of the page for people, from its sources, so that the page is always what they say. What is built and packed
// has neither the sources nor a compiler: there the build puts the texts themselves into this module.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

export const HTML: string = readSource('page.html').replace(/^ +/gm, '')
export const STYLE: string = compileSource('page.css', 'css')
export const SCRIPT: string = compileSource('page.ts', 'ts')

/** By its command, with pipes of its own: a child that inherits stderr makes each write to it wait for its reader. */
function compileSource(name: string, loader: 'css' | 'ts'): string {
  const esbuild = createRequire(import.meta.url).resolve('esbuild/bin/esbuild')
  const args = [`--loader=${loader}`, '--target=es2023', '--minify-whitespace']
  return execFileSync(esbuild, args, { input: readSource(name), stdio: 'pipe', encoding: 'utf8' })
}

/** The build reads them too, from dist, which is as deep as src. */
function readSource(name: string): string {
  return readFileSync(new URL(`../../../../src/standalone/paths/page/browser/${name}`, import.meta.url), 'utf8')
}
