/** Enough for a million consecutive ids, or 149,000 random ids. */
const MAX_BYTES = 1_048_576
const CHUNK_BYTES = 65_536
const MAX_ENTRY_BYTES = 10

/**
 * Stores ascending ids compactly, as the differences between consecutive ids. Each difference is a variable-length
 * integer (LEB128): 7 bits per byte, least significant first, with the high bit set on all bytes except the last.
 */
export class IdSnapshot {
  readonly #chunks: Uint8Array[] = []
  #length = 0
  lastId: bigint | undefined

  /** Adds an id that is greater than all others. Returns false if there is no space left for it. */
  add(id: bigint): boolean {
    if (this.#length > MAX_BYTES - MAX_ENTRY_BYTES) return false
    let delta = this.lastId === undefined ? BigInt.asUintN(64, id) : id - this.lastId
    this.lastId = id
    for (; delta > 127n; delta >>= 7n) this.#pushByte(Number(delta & 127n) | 128)
    this.#pushByte(Number(delta))
    return true
  }

  *[Symbol.iterator](): Generator<bigint> {
    let id: bigint | undefined
    let delta = 0n
    let shift = 0n
    for (let index = 0; index < this.#length; index++) {
      const byte = this.#chunks[Math.floor(index / CHUNK_BYTES)]![index % CHUNK_BYTES]!
      delta |= BigInt(byte & 127) << shift
      shift += 7n
      if (byte > 127) continue
      id = id === undefined ? BigInt.asIntN(64, delta) : id + delta
      yield id
      delta = 0n
      shift = 0n
    }
  }

  #pushByte(byte: number): void {
    const offset = this.#length++ % CHUNK_BYTES
    if (offset === 0) this.#chunks.push(new Uint8Array(CHUNK_BYTES))
    this.#chunks.at(-1)![offset] = byte
  }
}
