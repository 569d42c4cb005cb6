/** A million ids in a row fit, or 149,000 at random. */
const MAX_BYTES = 1_048_576
const CHUNK_BYTES = 65_536
const MAX_ENTRY_BYTES = 10

/** Ids, ascending, each as its distance from the one before: 7 bits a byte, lowest first, high bit on all but the last. */
export class SurveyedIds {
  readonly #chunks: Uint8Array[] = []
  #length = 0
  last: bigint | undefined

  /** @returns false if there is no more space, so the id isn't kept */
  add(id: bigint): boolean {
    if (this.#length > MAX_BYTES - MAX_ENTRY_BYTES) return false
    let distance = this.last === undefined ? BigInt.asUintN(64, id) : id - this.last
    this.last = id
    for (; distance > 127n; distance >>= 7n) this.#push(Number(distance & 127n) | 128)
    this.#push(Number(distance))
    return true
  }

  *[Symbol.iterator](): Generator<bigint> {
    let id: bigint | undefined
    let distance = 0n
    let shift = 0n
    for (let at = 0; at < this.#length; at++) {
      const byte = this.#chunks[Math.floor(at / CHUNK_BYTES)]![at % CHUNK_BYTES]!
      distance |= BigInt(byte & 127) << shift
      shift += 7n
      if (byte > 127) continue
      id = id === undefined ? BigInt.asIntN(64, distance) : id + distance
      yield id
      distance = 0n
      shift = 0n
    }
  }

  #push(byte: number): void {
    const at = this.#length++ % CHUNK_BYTES
    if (at === 0) this.#chunks.push(new Uint8Array(CHUNK_BYTES))
    this.#chunks.at(-1)![at] = byte
  }
}
