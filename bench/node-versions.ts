import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * Runs the benchmark, including client and contestants, on other Node versions, which npm downloads.
 * @param args the command-line arguments of this run
 * @param isJson whether to print the results of all versions as one JSON array
 */
export function runOnNodeVersions(versions: readonly string[], args: readonly string[], isJson: boolean): void {
  const runs = versions.flatMap((version) => {
    const nodePackage = `--package=node-${process.platform}-${process.arch}@${version}`
    // If an option is repeated, the last value wins.
    const benchArgs = ['--import', 'tsx', fileURLToPath(new URL('run.ts', import.meta.url)), ...args, '--node', '']
    const { status, stdout } = spawnSync('npm', ['exec', '--yes', nodePackage, '--', 'node', ...benchArgs], {
      encoding: 'utf8',
      stdio: ['ignore', isJson ? 'pipe' : 'inherit', 'inherit'],
      maxBuffer: Infinity,
    })
    if (status !== 0) throw new Error(`The benchmark exited with status ${status} on Node ${version}.`)
    return isJson ? (JSON.parse(stdout) as unknown[]) : []
  })
  if (isJson) console.log(JSON.stringify(runs, undefined, 2))
}
