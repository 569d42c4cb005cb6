import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * Runs the benchmark, client and contestants, on other versions of Node, which come from npm.
 * @param args the options as they were given
 * @param isJson whether they ask for JSON: then what all have printed is one array
 */
export function runOnNodeVersions(versions: readonly string[], args: readonly string[], isJson: boolean): void {
  const runs = versions.flatMap((version) => {
    const nodePackage = `--package=node-${process.platform}-${process.arch}@${version}`
    // Of two equal options the last one holds.
    const benchArgs = ['--import', 'tsx', fileURLToPath(new URL('run.ts', import.meta.url)), ...args, '--node', '']
    const { status, stdout } = spawnSync('npm', ['exec', '--yes', nodePackage, '--', 'node', ...benchArgs], {
      encoding: 'utf8',
      stdio: ['ignore', isJson ? 'pipe' : 'inherit', 'inherit'],
      maxBuffer: Infinity,
    })
    if (status !== 0) throw new Error(`the benchmark failed on Node ${version}`)
    return isJson ? (JSON.parse(stdout) as unknown[]) : []
  })
  if (isJson) console.log(JSON.stringify(runs, undefined, 2))
}
