/** How often something is reported, at most. */
const INTERVAL_MS = 1000

/** Reports that wait until their second is over. */
const waiting = new Set<() => void>()

/**
 * Makes a function that counts its calls and reports them: at once if the last report is a second ago, and else when
 * the second is over.
 * @param report is given how many calls there were since the last report
 */
export function throttle(report: (count: number) => void): () => void {
  let count = 0
  let timer: NodeJS.Timeout | undefined

  function reportNow(): void {
    waiting.delete(reportNow)
    clearTimeout(timer)
    timer = setTimeout(endSecond, INTERVAL_MS).unref()
    const counted = count
    count = 0
    report(counted)
  }
  function endSecond(): void {
    timer = undefined
    if (count > 0) reportNow()
  }
  return () => {
    count++
    if (timer === undefined) reportNow()
    else waiting.add(reportNow)
  }
}

/** Makes all reports that wait, as the process ends. */
export function reportAllNow(): void {
  for (const report of [...waiting]) report()
}
