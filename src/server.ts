#!/usr/bin/env node
// Old versions of Node must be able to parse this file to report that they're too old, so it has no static imports and
// no recent syntax.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major! * 1000 + minor! < 20019) {
  process.stderr.write(`plant-store: Node 20.19 or later is required; this is Node ${process.versions.node}\n`)
  process.exitCode = 2
} else {
  // Until the server listens, SIGHUP must not end the process, but SIGTERM and SIGINT must. For the first process in a
  // container (PID 1), Linux ignores SIGTERM and SIGINT unless the process has handlers for them. An interrupted
  // `--ready` must not report success, so it exits with 1.
  const args = process.argv.slice(2)
  const stop = (): never => process.exit(args.length === 0 ? 0 : 1)
  process.on('SIGHUP', () => undefined)
  process.on('SIGTERM', stop).on('SIGINT', stop)
  void import('./standalone/command-line.ts').then(({ runCommand }) => runCommand(args))
}
