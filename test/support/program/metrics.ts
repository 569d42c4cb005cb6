import type { TestContext } from 'node:test'
import { waitUntil } from '../wait-until.ts'
import { startProgram, type Program, type LaunchOptions } from './program.ts'

/** Starts the standalone server with an admin port, and returns it with the URL of that port. */
export async function startWithMetrics(
  t: TestContext,
  environment: Readonly<Record<string, string>> = {},
  launchOptions?: LaunchOptions,
): Promise<{ readonly program: Program; readonly admin: string }> {
  const program = await startProgram(t, { PLANT_STORE_ADMIN_PORT: '0', ...environment }, launchOptions)
  const { admin } = await program.waitForLogEvent('start')
  return { program, admin: String(admin) }
}

export async function scrapeMetrics(admin: string): Promise<string> {
  return (await fetch(`${admin}/metrics`)).text()
}

/** Scrapes the metrics until at least `minCount` lines match, and returns them. Histogram buckets are ignored. */
export async function waitForSeries(admin: string, pattern: RegExp, minCount: number): Promise<string[]> {
  let lines: string[] = []
  await waitUntil(async () => {
    lines = (await scrapeMetrics(admin)).split('\n').filter((line) => !line.includes('_bucket') && pattern.test(line))
    return lines.length >= minCount
  })
  return lines.sort()
}
