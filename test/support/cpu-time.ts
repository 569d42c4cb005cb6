/** The CPU time of this process since then, in microseconds. */
export function cpuTimeSince(startUsage: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(startUsage)
  return user + system
}

/**
 * The CPU time of a call in microseconds: the least of a few tries, or the first that is less than `enough`. What else
 * the machine does makes a call slower, never faster.
 */
export async function measureCpuTime(call: () => unknown, targetMicros = 0): Promise<number> {
  let minMicros = Infinity
  for (let attempt = 0; attempt < 5 && minMicros >= targetMicros; attempt++) {
    const startUsage = process.cpuUsage()
    await call()
    minMicros = Math.min(minMicros, cpuTimeSince(startUsage))
  }
  return minMicros
}
