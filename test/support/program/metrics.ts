import type { TestContext } from 'node:test'
import { until } from '../until.ts'
import { startProgram, type Program, type Surroundings } from './program.ts'

/** The program with an admin port, and the URL of that port. */
export async function startWithMetrics(
  t: TestContext,
  environment: Readonly<Record<string, string>> = {},
  surroundings?: Surroundings,
): Promise<{ readonly program: Program; readonly admin: string }> {
  const program = await startProgram(t, { PLANT_STORE_ADMIN_PORT: '0', ...environment }, surroundings)
  const { admin } = await program.logged('start')
  return { program, admin: String(admin) }
}

export async function scrape(admin: string): Promise<string> {
  return (await fetch(`${admin}/metrics`)).text()
}

/** The series that match, without those of buckets; scraped until there are so many. */
export async function series(admin: string, pattern: RegExp, atLeast: number): Promise<string[]> {
  let found: string[] = []
  await until(async () => {
    found = (await scrape(admin)).split('\n').filter((line) => !line.includes('_bucket') && pattern.test(line))
    return found.length >= atLeast
  })
  return found.sort()
}
