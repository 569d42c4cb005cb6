// The texts of the page for people, from its sources, so that the page is always what they say. What is built and packed
// has neither the sources nor a compiler: there the build puts the texts themselves into this module.
import { readFileSync } from 'node:fs'
import { transformSync } from 'esbuild'

export const HTML: string = read('page.html').replace(/^ +/gm, '')
export const STYLE: string = compile('page.css', 'css')
export const SCRIPT: string = compile('page.ts', 'ts')

function compile(name: string, loader: 'css' | 'ts'): string {
  return transformSync(read(name), { loader, target: 'es2023', minifyWhitespace: true }).code
}

/** The build reads them too, from dist, which is as deep as src. */
function read(name: string): string {
  return readFileSync(new URL(`../../../../src/standalone/paths/page/browser/${name}`, import.meta.url), 'utf8')
}
