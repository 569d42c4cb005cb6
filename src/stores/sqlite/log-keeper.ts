import { stat } from 'node:fs/promises'
import { Worker } from 'node:worker_threads'

/** A log that is larger is large. In use it has about 4 MB, and more only if a group of writes is large. */
export const LARGE_LOG_BYTES: number = 16 * 2 ** 20

/** How long to wait until the log is looked at again. */
const INTERVAL_MS = 1000

/**
 * The program of a thread that empties the log of a file. PASSIVE holds up nobody, but leaves what is written meanwhile.
 * So that is done until little is left, or no longer less. TRUNCATE does the rest, after the store has been asked to
 * write nothing meanwhile. A reader that keeps the log from being emptied is waited for.
 */
const EMPTY_LOG = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { DatabaseSync } = require('node:sqlite')
  const database = new DatabaseSync(workerData.file)
  database.exec(workerData.pragmas + '; PRAGMA busy_timeout = 100')
  const checkpoint = (mode) => database.prepare('PRAGMA wal_checkpoint(' + mode + ')').get()

  function isNearlyEmpty() {
    let done = 0
    for (let last = Infinity; ; ) {
      const { busy, log, checkpointed } = checkpoint('PASSIVE')
      if (busy !== 0 || checkpointed < log) return false
      const round = log - done
      if (round < 1000 || round > last / 2) return true
      done = log
      last = round
    }
  }

  function start() {
    if (!isNearlyEmpty()) return setTimeout(start, workerData.intervalMs)
    parentPort.once('message', finish)
    parentPort.postMessage('pause')
  }

  function finish() {
    if (checkpoint('TRUNCATE').busy === 0) return database.close()
    parentPort.postMessage('resume')
    setTimeout(start, workerData.intervalMs)
  }

  start()`

/**
 * Keeps the log of a file from stopping the event loop. SQLite empties it within a commit, which is quick while it is
 * small. But while another process reads, the log grows, and the first commit after that would empty all of it. So a
 * large log is emptied by a thread.
 */
export class LogKeeper {
  readonly #file: string
  readonly #pragmas: string
  readonly #emptyInCommits: (isOn: boolean) => void
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined
  #thread: Worker | undefined
  #isPaused = false
  #isClosed = false

  /**
   * @param file its absolute path
   * @param pragmas what a connection to it is to be asked for, so that it loses nothing
   * @param emptyInCommits says whether commits are to empty the log
   */
  constructor(file: string, pragmas: string, emptyInCommits: (isOn: boolean) => void) {
    this.#file = file
    this.#pragmas = pragmas
    this.#emptyInCommits = emptyInCommits
    // A process that was killed may have left a large log.
    this.#lookIn(0)
  }

  /** Whether nothing may be written now, as the thread has the write lock or is about to take it. */
  get isPaused(): boolean {
    return this.#isPaused
  }

  /** To be called after every commit. */
  wrote(): void {
    if (this.#timer === undefined) this.#lookIn(INTERVAL_MS)
  }

  /** Settles once the thread has ended. What is still to be looked at starts none any more. */
  async close(): Promise<void> {
    this.#isClosed = true
    void this.#thread?.terminate()
    await this.#looking
  }

  #lookIn(ms: number): void {
    const look = (): void => {
      this.#looking = this.#look()
    }
    this.#timer = setTimeout(look, ms).unref()
  }

  async #look(): Promise<void> {
    const bytes = await stat(`${this.#file}-wal`).then(
      ({ size }) => size,
      () => 0,
    )
    if (bytes > LARGE_LOG_BYTES && !this.#isClosed) {
      this.#emptyInCommits(false)
      // If it fails, commits empty the log, until that is looked at again.
      await this.#runThread().catch(() => undefined)
      this.#isPaused = false
      this.#emptyInCommits(true)
    }
    this.#timer = undefined
  }

  /** Settles once the thread has emptied the log, or was terminated. */
  #runThread(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const workerData = { file: this.#file, pragmas: this.#pragmas, intervalMs: INTERVAL_MS }
      // Without the options of the process, among which a host may have modules to load.
      const options = { eval: true, env: {}, execArgv: ['--disable-warning=ExperimentalWarning'], workerData }
      const thread = new Worker(EMPTY_LOG, options)
      thread.on('message', (message) => {
        this.#isPaused = message === 'pause'
        if (this.#isPaused) thread.postMessage('go')
      })
      thread.on('error', reject)
      thread.on('exit', resolve)
      // Who listens to messages keeps the process alive, so this comes last.
      thread.unref()
      this.#thread = thread
    })
  }
}
