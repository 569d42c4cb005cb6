/** The CPU time of this process since then, in microseconds. */
export function cpuTimeSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/**
 * The CPU time of a call in microseconds: the least of a few tries, or the first that is less than `enough`. What else
 * the machine does makes a call slower, never faster.
 */
export async function cpuTime(call: () => unknown, enough = 0): Promise<number> {
  let least = Infinity
  for (let tries = 0; tries < 5 && least >= enough; tries++) {
    const before = process.cpuUsage()
    await call()
    least = Math.min(least, cpuTimeSince(before))
  }
  return least
}
