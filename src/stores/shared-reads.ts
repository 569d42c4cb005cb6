interface Read<Result> {
  readonly settled: Promise<void>
  /** The read that follows, where someone waits for it. */
  next: Promise<Result> | undefined
}

/**
 * Reads that wait for the same thing share one. Those that are asked for while one is under way wait for the
 * next, as that one may have begun before what their caller knows to be written.
 */
export class SharedReads<Result> {
  readonly #underWay = new Map<string, Read<Result>>()

  /** @param key the same for two reads only where they read the same */
  read(key: string, read: () => Promise<Result>): Promise<Result> {
    const underWay = this.#underWay.get(key)
    if (underWay === undefined) return this.#start(key, read)
    return (underWay.next ??= underWay.settled.then(() => this.#start(key, read)))
  }

  #start(key: string, read: () => Promise<Result>): Promise<Result> {
    const result = read()
    const end = (): void => {
      if (started.next === undefined) this.#underWay.delete(key)
    }
    const started: Read<Result> = { settled: result.then(end, end), next: undefined }
    this.#underWay.set(key, started)
    return result
  }
}
