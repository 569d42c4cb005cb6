interface Read<Result> {
  readonly settled: Promise<void>
  /** The read that follows; undefined if nobody waits for it. */
  next: Promise<Result> | undefined
}

/**
 * Shares a read among callers that want the same. A caller that comes while a read is under way waits for the next one:
 * the current one may have begun before a write that the caller knows of.
 * @returns reads; its keys are the same for two reads only if they read the same
 */
export function shareReads<Result>(): (key: string, read: () => Promise<Result>) => Promise<Result> {
  const underWay = new Map<string, Read<Result>>()

  function start(key: string, read: () => Promise<Result>): Promise<Result> {
    const result = read()
    const end = (): void => {
      if (started.next === undefined) underWay.delete(key)
    }
    const started: Read<Result> = { settled: result.then(end, end), next: undefined }
    underWay.set(key, started)
    return result
  }

  return (key, read) => {
    const current = underWay.get(key)
    if (current === undefined) return start(key, read)
    return (current.next ??= current.settled.then(() => start(key, read)))
  }
}
