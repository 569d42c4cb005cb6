#!/usr/bin/env node
// Old Node versions must be able to run this file to print the error, so it has no static imports and only old syntax.
const [major, minor] = process.versions.node.split('.').map(Number)
// Undefined without `--permission`. If network access is denied, Node throws an error that the program can't catch.
const permission = process.permission as typeof process.permission | undefined
const isNetworkDenied =
  permission !== undefined && process.allowedNodeEnvironmentFlags.has('--allow-net') && !permission.has('net')

let problem: string | undefined
if (isNetworkDenied) problem = 'with --permission, the server also needs --allow-net'
if (major! * 1000 + minor! < 20019)
  problem = `Node 20.19 or later is required, but this is Node ${process.versions.node}`

if (problem !== undefined) {
  process.stderr.write(`plant-store: ${problem}\n`)
  process.exitCode = 2
} else {
  // While the program is loading, SIGHUP must not end it, but SIGTERM and SIGINT must: without a listener, Linux
  // ignores these signals for the first process of a container. If one of them ends a command such as `--ready`, the
  // command failed.
  const args = process.argv.slice(2)
  const stop = (): never => process.exit(args.length === 0 ? 0 : 1)
  process.on('SIGHUP', () => undefined)
  process.on('SIGTERM', stop).on('SIGINT', stop)
  void import('./standalone/command-line.ts').then((module) => {
    void module.runCommand(args)
    process.off('SIGTERM', stop).off('SIGINT', stop)
  })
}
