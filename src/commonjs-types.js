// Copies the declarations for CommonJS modules. Node lets them require() an ES module, but a compiler before TypeScript
// 5.8 refuses the types of one.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const dist = fileURLToPath(new URL('../dist', import.meta.url))
const target = join(dist, 'commonjs')

rmSync(target, { recursive: true, force: true })
for (const path of readdirSync(dist, { recursive: true })) {
  if (path.endsWith('.d.ts')) copyDeclarations(path)
}
writeFileSync(join(target, 'package.json'), '{ "type": "commonjs" }\n')

/** The map of a declaration is beside the first copy only. */
function copyDeclarations(path) {
  const text = readFileSync(join(dist, path), 'utf8').replace(/^\/\/# sourceMappingURL=.*\n?/m, '')
  mkdirSync(dirname(join(target, path)), { recursive: true })
  writeFileSync(join(target, path), text)
}
