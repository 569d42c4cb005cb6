/** How often a line is printed if the output isn't a terminal, in milliseconds. */
const LINE_INTERVAL_MS = 15_000

/**
 * Shows the progress of a test run: failures when they occur, and the number of files, on a single line of a terminal
 * that is rewritten each second, or else on a new line now and then.
 */
export class Progress {
  #running = new Set()
  #counts = { passed: 0, failed: 0, skipped: 0 }
  #skips = new Map()
  #failures = []
  #ended = 0
  #startedAt = performance.now()
  #lineAt = performance.now()
  #total
  #output
  #timer

  constructor(total, output = process.stdout) {
    this.#total = total
    this.#output = output
    this.#timer = setInterval(() => this.#show(), 1000)
  }

  start(group) {
    this.#running.add(group)
  }

  end(group, fileCount, results, output) {
    this.#running.delete(group)
    this.#ended += fileCount
    const failures = results.filter(({ outcome }) => outcome === 'failed')
    for (const { outcome, reason } of results) {
      this.#counts[outcome]++
      if (outcome !== 'skipped') continue
      const text = reason === true || reason === '' ? 'no reason given' : reason
      this.#skips.set(text, (this.#skips.get(text) ?? 0) + 1)
    }
    for (const { name, message } of failures) {
      this.#failures.push(name)
      this.#print(`\nFAILED ${name}\n${message.replace(/^/gm, '  ')}\n`)
    }
    if (failures.length > 0 && output !== '') this.#print(`  Output of ${group}:\n${output.replace(/^/gm, '    ')}\n`)
    this.#show()
  }

  /** Prints the totals. Returns whether there were tests, and all of them have passed. */
  finish() {
    clearInterval(this.#timer)
    const { passed, failed, skipped } = this.#counts
    if (this.#failures.length > 0) this.#print(`\nFailed:\n${this.#failures.map((name) => `  ${name}\n`).join('')}`)
    if (skipped > 0) {
      const reasons = [...this.#skips].sort(([, a], [, b]) => b - a)
      this.#print(
        `\nSkipped:\n${reasons.map(([reason, count]) => `${String(count).padStart(6)}  ${reason}\n`).join('')}`,
      )
    }
    if (passed + failed + skipped === 0) this.#print('\nNo test has a name that matches.\n')
    const seconds = Math.round((performance.now() - this.#startedAt) / 1000)
    this.#print(`\n${this.#total} files in ${seconds} s\n${passed} passed, ${failed} failed, ${skipped} skipped\n`)
    return failed === 0 && passed + skipped > 0
  }

  #show() {
    const now = performance.now()
    const seconds = Math.round((now - this.#startedAt) / 1000)
    const state = `${seconds} s: ${this.#ended} of ${this.#total} files, ${this.#counts.failed} failed`
    // The set is in the order in which the files were started.
    const [slowest] = this.#running
    const rest = slowest === undefined ? '' : `, running: ${slowest}`
    if (this.#output.isTTY) {
      this.#output.write(`\r\x1b[K${(state + rest).slice(0, (this.#output.columns || 80) - 1)}`)
    } else if (now - this.#lineAt >= LINE_INTERVAL_MS) {
      this.#lineAt = now
      this.#output.write(`${state}${rest}\n`)
    }
  }

  #print(text) {
    if (this.#output.isTTY) this.#output.write('\r\x1b[K')
    this.#output.write(text)
  }
}
