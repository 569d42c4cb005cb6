import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Bundles the standalone server for Node 20, which doesn't run TypeScript: each start with tsx takes half a second of CPU
 * time. The bundle is deleted when this process exits.
 * @returns the path of its main module
 */
export function bundleServer() {
  const { buildSync } = createRequire(import.meta.resolve('tsx'))('esbuild')
  const outdir = mkdtempSync(join(tmpdir(), 'plant-store-server-'))
  process.once('exit', () => rmSync(outdir, { recursive: true, force: true }))
  buildSync({
    entryPoints: ['src/server.ts'],
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    // The stores are loaded only when they're used, as in the package.
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
  })
  return join(outdir, 'server.mjs')
}
