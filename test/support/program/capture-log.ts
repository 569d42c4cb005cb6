import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'

export type LogEvents = readonly Readonly<Record<string, unknown>>[]

/** Captures the log lines of this process. Checks and removes the time and level of each line. */
export function captureLog(t: TestContext): LogEvents {
  const events: Record<string, unknown>[] = []
  t.mock.method(process.stderr, 'write', (line: string) => {
    const { time, level, ...event } = JSON.parse(line) as Record<string, unknown>
    assert.ok(Date.parse(String(time)) <= Date.now())
    assert.match(String(level), /^(?:info|warn|error)$/)
    events.push(event)
    return true
  })
  return events
}

/** Returns the value of one field of each event. */
export function getValues(events: LogEvents, name: string): unknown[] {
  return events.map((event) => event[name])
}
