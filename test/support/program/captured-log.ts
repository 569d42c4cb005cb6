import type { TestContext } from 'node:test'

/** Keeps what the test's own process writes to stderr, as the events of a log. */
export function captureLog(t: TestContext): Readonly<Record<string, unknown>>[] {
  const events: Readonly<Record<string, unknown>>[] = []
  t.mock.method(process.stderr, 'write', (line: string) => {
    events.push(JSON.parse(line) as Record<string, unknown>)
    return true
  })
  return events
}
