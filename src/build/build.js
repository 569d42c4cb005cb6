// Builds dist: modules without comments, declarations with comments, and the web UI, which is compiled for browsers.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join, relative } from 'node:path'
import ts from 'typescript'

process.chdir(join(import.meta.dirname, '../..'))

/** Compiles each file by itself, which is faster. `npm run typecheck` checks the types. */
function compile(project) {
  const options = { module: ts.ModuleKind.ESNext, removeComments: true }
  const { options: compilerOptions, fileNames } = ts.getParsedCommandLineOfConfigFile(project, options, ts.sys)
  for (const fileName of fileNames) {
    const text = readFileSync(fileName, 'utf8')
    const { outputText, diagnostics } = ts.transpileModule(text, { fileName, compilerOptions, reportDiagnostics: true })
    if (diagnostics.length > 0) {
      console.error(ts.formatDiagnostics(diagnostics, ts.createCompilerHost(compilerOptions)))
      process.exit(1)
    }
    const output = join('dist', relative('src', fileName)).replace(/\.ts$/, '.js')
    mkdirSync(dirname(output), { recursive: true })
    writeFileSync(output, outputText)
  }
}

// Files of an earlier build must not become part of the package.
rmSync('dist', { recursive: true, force: true })
compile('tsconfig.json')
compile('src/web-ui/tsconfig.json')
for (const name of readdirSync('src/web-ui').filter((name) => ['.html', '.css'].includes(extname(name)))) {
  cpSync(`src/web-ui/${name}`, `dist/web-ui/${name}`)
}
// `npm start` needs only the modules; the declarations are for apps that import the package.
if (process.env.npm_lifecycle_event !== 'prestart') {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  execFileSync(process.execPath, [tsc, '--noCheck', '--emitDeclarationOnly'], { stdio: 'inherit' })
}
