import { performance } from 'node:perf_hooks'
import timers from 'node:timers'

// Lets a test fake the timers of `src/timers.ts`, which doesn't bind functions that have own properties. Import this
// module before any module of `src/`. Then mock the members of `node:timers`, as `mock.timers` does, or
// `performance.now`.
const { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval } = timers
const now = Reflect.get(performance, 'now') as object
for (const fakeable of [setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, now]) {
  Object.assign(fakeable, { isFakeable: true })
}
