/** Returns a random integer from 0 to `n - 1`. */
export type Random = (n: number) => number

/** Creates a pseudorandom number generator with a seed (mulberry32). */
export function createRandom(seed: number): Random {
  let state = seed | 0
  return (n) => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return Math.floor((((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32) * n)
  }
}
