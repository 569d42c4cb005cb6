interface Read<Result> {
  readonly settled: Promise<void>
  /** The read that follows; undefined if nobody waits for it. */
  next: Promise<Result> | undefined
}

/**
 * Shares a read among callers that want the same. A caller that comes while a read is under way waits for the next one:
 * the current one may have begun before a write that the caller knows of.
 */
export class SharedReads<Result> {
  readonly #underWay = new Map<string, Read<Result>>()

  /** @param key the same for two reads only if they read the same */
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
