import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { selectEnvironment } from './environment.js'

const REPORTER = `--test-reporter=${import.meta.resolve('./file-reporter.js')} --test-reporter-destination=stdout`

/**
 * Runs test files, each in its own process group. A file that exceeds the time limit is killed, together with the
 * processes it has started. So are processes that remain when the file's own process has exited.
 * @param files the paths of the test files
 * @param options.nodeArgs arguments of Node
 * @param options.concurrency the number of files that run at the same time
 * @param options.limitSeconds the time limit of a file
 * @param options.progress is called with the event of each file: `start(file)`, and `end(file, results, output)`
 */
export async function runFiles(files, { nodeArgs, concurrency, limitSeconds, progress }) {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-tests-'))
  const running = new Set()
  const killAll = () => running.forEach(killGroup)
  const interrupt = (signal) => {
    killAll()
    rmSync(folder, { recursive: true, force: true })
    console.error(`\nInterrupted by ${signal}.`)
    process.exit(1)
  }
  const signals = ['SIGHUP', 'SIGINT', 'SIGTERM']
  for (const signal of signals) process.once(signal, interrupt)
  const waiting = files.entries()
  const work = async () => {
    for (const [index, file] of waiting) {
      progress.start(file)
      const paths = ['results', 'output'].map((name) => join(folder, `${index}.${name}`))
      progress.end(file, ...(await runFile(file, paths, nodeArgs, limitSeconds, running)))
    }
  }
  try {
    await Promise.all(Array.from({ length: concurrency }, work))
  } finally {
    for (const signal of signals) process.off(signal, interrupt)
    rmSync(folder, { recursive: true, force: true })
  }
}

async function runFile(file, [resultsPath, outputPath], nodeArgs, limitSeconds, running) {
  writeFileSync(resultsPath, '')
  // A file instead of a pipe: a pipe stays open as long as any process that has inherited it.
  const output = openSync(outputPath, 'w')
  const env = { ...selectEnvironment(process.env), TEST_RESULTS: resultsPath, NODE_OPTIONS: REPORTER }
  const stdio = ['ignore', output, output]
  const child = spawn(process.execPath, [...nodeArgs, file], { env, stdio, detached: true })
  closeSync(output)
  running.add(child)
  let isOverdue = false
  const timer = setTimeout(() => {
    isOverdue = true
    killGroup(child)
  }, limitSeconds * 1000)
  const [status, signal] = await once(child, 'exit').finally(() => clearTimeout(timer))
  running.delete(child)
  killGroup(child)

  const results = readFileSync(resultsPath, 'utf8').split('\n').filter(Boolean).map(JSON.parse)
  const fail = (message) => results.push({ outcome: 'failed', name: file, message })
  const last = results.at(-1)?.name ?? 'none'
  if (isOverdue) fail(`The file was killed after ${limitSeconds} s. The last test that ended: ${last}.`)
  else if (status === null) fail(`The process was ended by ${signal}. The last test that ended: ${last}.`)
  else if (status !== 0 && results.every(({ outcome }) => outcome !== 'failed')) {
    fail(`The process exited with status ${status}. The last test that ended: ${last}.`)
  }
  return [results, readFileSync(outputPath, 'utf8')]
}

/** Kills the process and all the processes that it has started. */
function killGroup({ pid }) {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // All of them have exited.
  }
}
