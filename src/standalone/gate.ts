import type { RequestListener } from 'node:http'

/** A listener that can make requests wait. */
export interface Gate {
  readonly listener: RequestListener
  /** Makes the requests wait that come from now on. */
  shut(): void
  /** Hands on the requests that have waited, in the order in which they came. From now on none waits. */
  open(): void
}

/** Puts an open gate before a listener. */
export function createGate(listener: RequestListener): Gate {
  let isOpen = true
  let waiting: (() => void)[] = []
  return {
    listener(request, response) {
      if (isOpen) listener(request, response)
      else waiting.push(() => listener(request, response))
    },
    shut() {
      isOpen = false
    },
    open() {
      isOpen = true
      const handOn = waiting
      waiting = []
      for (const call of handOn) call()
    },
  }
}
