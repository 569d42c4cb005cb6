#!/usr/bin/env node
// A Node that is too old must be able to read this file: it imports nothing at first, and has only old syntax.
const [major, minor] = process.versions.node.split('.').map(Number)
// Undefined without `--permission`. If it denies the network, Node throws where no listener of the program can catch it.
const permission = process.permission as typeof process.permission | undefined
const isNetworkDenied =
  permission !== undefined && process.allowedNodeEnvironmentFlags.has('--allow-net') && !permission.has('net')

let problem: string | undefined
if (isNetworkDenied) problem = 'this Node takes --permission only with --allow-net, as the program uses the network'
if (major! * 1000 + minor! < 20019) problem = `Node 20.19 or later is needed, and this is Node ${process.versions.node}`

if (problem !== undefined) {
  process.stderr.write(`plant-store: ${problem}\n`)
  process.exitCode = 2
} else {
  // SIGHUP must not end a program that is still being loaded. SIGTERM and SIGINT must: Linux ignores them if the first
  // process of a container does not listen. A `--ready` that they end has not said yes.
  const args = process.argv.slice(2)
  const stop = (): never => process.exit(args.length === 0 ? 0 : 1)
  process.on('SIGHUP', () => undefined)
  process.on('SIGTERM', stop).on('SIGINT', stop)
  void import('./standalone/command-line.ts').then((module) => {
    void module.runCommand(args)
    process.off('SIGTERM', stop).off('SIGINT', stop)
  })
}
