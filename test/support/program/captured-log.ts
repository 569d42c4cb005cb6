import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'

export type Events = readonly Readonly<Record<string, unknown>>[]

/** Keeps what the test's own process writes to stderr, as the events of a log. Each has a time, which is left out. */
export function captureLog(t: TestContext): Events {
  const events: Record<string, unknown>[] = []
  t.mock.method(process.stderr, 'write', (line: string) => {
    const { time, ...event } = JSON.parse(line) as Record<string, unknown>
    assert.ok(Date.parse(String(time)) <= Date.now())
    events.push(event)
    return true
  })
  return events
}

/** A member of each event. */
export function valuesOf(events: Events, name: string): unknown[] {
  return events.map((event) => event[name])
}
