/** Returns the CPU time that this process has used since `startUsage`, in microseconds. */
export function cpuTimeSince(startUsage: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(startUsage)
  return user + system
}

/**
 * Measures the CPU time of a call in microseconds. Returns the minimum of five attempts, or the first value below
 * `targetMicros`: other load on the machine can only make a call slower.
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
