import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const REPORTER = `--test-reporter=${import.meta.resolve('./file-reporter.js')} --test-reporter-destination=stdout`
const IMPORT_FILES = fileURLToPath(new URL('import-files.js', import.meta.url))

/**
 * Runs groups of test files, each in its own process group. One that exceeds the time limit is killed, together with the
 * processes it has started. So are processes that remain when the group's own process has exited.
 * @param groups the paths of the test files of each group
 * @param options.nodeArgs arguments of Node
 * @param options.concurrency the number of groups that run at the same time
 * @param options.limitSeconds the time limit of a group
 * @param options.progress is called with the event of each group: `start(name)`, and `end(name, count, results, output)`
 */
export async function runFiles(groups, { nodeArgs, concurrency, limitSeconds, progress }) {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-tests-'))
  const running = new Set()
  const interrupt = (signal) => {
    running.forEach(killGroup)
    rmSync(folder, { recursive: true, force: true })
    console.error(`\nInterrupted by ${signal}.`)
    process.exit(1)
  }
  const signals = ['SIGHUP', 'SIGINT', 'SIGTERM']
  for (const signal of signals) process.once(signal, interrupt)
  const waiting = groups.entries()
  const work = async () => {
    for (const [index, files] of waiting) {
      const name = files.length === 1 ? files[0] : `${dirname(files[0])} (${files.length} files)`
      progress.start(name)
      const paths = ['results', 'output'].map((name) => join(folder, `${index}.${name}`))
      progress.end(name, files.length, ...(await runGroup(name, files, paths, nodeArgs, limitSeconds, running)))
    }
  }
  try {
    await Promise.all(Array.from({ length: concurrency }, work))
  } finally {
    for (const signal of signals) process.off(signal, interrupt)
    rmSync(folder, { recursive: true, force: true })
  }
}

async function runGroup(name, files, [resultsPath, outputPath], nodeArgs, limitSeconds, running) {
  writeFileSync(resultsPath, '')
  // The output goes to a file, because a pipe stays open until all processes that have inherited it have ended.
  const output = openSync(outputPath, 'w')
  const env = { ...process.env, TEST_RESULTS: resultsPath, NODE_OPTIONS: REPORTER }
  const stdio = ['ignore', output, output]
  const child = spawn(process.execPath, [...nodeArgs, IMPORT_FILES, ...files], { env, stdio, detached: true })
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
  const last = results.at(-1)?.name ?? 'none'
  const fail = (message) =>
    results.push({ outcome: 'failed', name, message: `${message} The last test that ended: ${last}.` })
  if (isOverdue) fail(`It was killed after ${limitSeconds} s.`)
  else if (status === null) fail(`The process was ended by ${signal}.`)
  else if (status !== 0 && results.every(({ outcome }) => outcome !== 'failed')) {
    fail(`The process exited with status ${status}.`)
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
