import { readFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import ts from 'typescript'

const SOURCES = new URL('../../src/', import.meta.url)
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; " +
  "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

/** Serves the web UI from its sources, and everything else from the service, under any path prefix. */
export function createWebUiListener(plants: RequestListener): RequestListener {
  return (request, response) => {
    const [path = ''] = /\/(?:(?:web-ui|client)\/[\w-]+\.(?:js|css))?$/.exec(request.url!) ?? []
    request.url = request.url!.replace(/^\/garden(?=\/)/, '')
    if (path === '') return plants(request, response)
    const name = path === '/' ? 'web-ui/index.html' : path.slice(1)
    const type = { html: 'text/html', css: 'text/css' }[name.split('.').at(-1)!] ?? 'text/javascript'
    response.setHeader('Content-Security-Policy', CONTENT_SECURITY_POLICY)
    response.setHeader('Content-Type', `${type}; charset=utf-8`)
    response.end(type === 'text/javascript' ? readModule(name) : readFileSync(new URL(name, SOURCES)))
  }
}

function readModule(name: string): string {
  const { ESNext } = ts.ModuleKind
  const compilerOptions = { target: ts.ScriptTarget.ESNext, module: ESNext, rewriteRelativeImportExtensions: true }
  return ts.transpileModule(readFileSync(new URL(name.replace(/js$/, 'ts'), SOURCES), 'utf8'), { compilerOptions })
    .outputText
}
