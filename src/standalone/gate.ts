import type { RequestListener } from 'node:http'

/** A listener that can let requests wait before they are dealt with. */
export interface Gate {
  readonly listener: RequestListener
  /** Lets the requests that come from now on wait. */
  shut(): void
  /** Hands on what has waited, in the order in which it came, and from now on lets nothing wait. */
  open(): void
}

/** Puts a gate, which is open, before a listener. */
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
