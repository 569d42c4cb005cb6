/** The longest delay that JavaScript timers support. Timers with a longer delay fire immediately. */
const MAX_TIMER_MS = 0x7fffffff

/**
 * Creates a function that runs another one until it ends or times out, and resolves to whether it has timed out.
 * Rejects when one of the signals is aborted. Then, and after a timeout, the function's own signal is aborted, too, but
 * the promise settles even if a custom `fetch` ignores that signal.
 *
 * `AbortSignal.any` can't replace this: it leaks up to 2.7 kB per call in Node 20 and 22, and many versions of jsdom
 * don't have it.
 */
export function createTimeouts(): (
  ms: number,
  signals: readonly AbortSignal[],
  run: (signal: AbortSignal) => Promise<void>,
) => Promise<boolean> {
  // One listener per signal, however many calls share it, because Node 20 prints a warning if there are eleven.
  const callbacks = new Map<AbortSignal, Set<() => void>>()
  const onAbort = ({ target }: Event): void => callbacks.get(target as AbortSignal)?.forEach((callback) => callback())

  function watch(signal: AbortSignal, callback: () => void): void {
    if (!callbacks.has(signal)) signal.addEventListener('abort', onAbort)
    callbacks.set(signal, (callbacks.get(signal) ?? new Set()).add(callback))
  }

  function unwatch(signal: AbortSignal, callback: () => void): void {
    callbacks.get(signal)?.delete(callback)
    if (callbacks.get(signal)?.size !== 0) return
    callbacks.delete(signal)
    signal.removeEventListener('abort', onAbort)
  }

  return async (ms, signals, run) => {
    const controller = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    let onEnd = (): void => undefined
    const ended = new Promise<boolean>((resolve, reject) => {
      onEnd = () => {
        const aborted = signals.find((signal) => signal.aborted)
        if (aborted === undefined) resolve(true)
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the reason can be any value
        else reject(aborted.reason)
        controller.abort(aborted?.reason)
      }
    })
    try {
      throwIfAborted(signals)
      for (const signal of signals) watch(signal, onEnd)
      timer = setTimeout(onEnd, Math.min(ms, MAX_TIMER_MS))
      return await Promise.race([ended, run(controller.signal).then(() => false)])
    } finally {
      clearTimeout(timer)
      for (const signal of signals) unwatch(signal, onEnd)
    }
  }
}

/** Throws the reason of the first signal that is aborted. Older versions of jsdom don't have `signal.throwIfAborted`. */
export function throwIfAborted(signals: readonly AbortSignal[]): void {
  for (const signal of signals) if (signal.aborted) throw signal.reason
}
