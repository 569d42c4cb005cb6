import type { TestContext } from 'node:test'

export type Events = readonly Readonly<Record<string, unknown>>[]

/** Keeps what the test's own process writes to stderr, as the events of a log. */
export function captureLog(t: TestContext): Events {
  const events: Record<string, unknown>[] = []
  t.mock.method(process.stderr, 'write', (line: string) => {
    events.push(JSON.parse(line) as Record<string, unknown>)
    return true
  })
  return events
}

/** A member of each event. */
export function valuesOf(events: Events, name: string): unknown[] {
  return events.map((event) => event[name])
}
