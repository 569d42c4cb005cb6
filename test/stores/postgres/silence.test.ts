import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Silence } from '../../../src/stores/postgres/silence.ts'

const INTERVAL_MS = 500

/** A silence whose server is asked as its script says, and who asked. */
function listenTo(t: TestContext): { silence: Silence; answers: ((isAnswered: boolean) => void)[] } {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const answers: ((isAnswered: boolean) => void)[] = []
  const silence = new Silence(() => new Promise((resolve) => answers.push(resolve)))
  t.after(() => silence.stop())
  return { silence, answers }
}

function isOver(silence: Silence): boolean {
  return silence.over === undefined
}

test('asks at once and again, until the server says something', async (t) => {
  const { silence, answers } = listenTo(t)
  assert.ok(isOver(silence))
  silence.begin(performance.now())
  assert.equal(answers.length, 1)
  t.mock.timers.tick(INTERVAL_MS)
  assert.equal(answers.length, 2)
  answers[0]!(false)
  await new Promise(setImmediate)
  assert.ok(!isOver(silence))
  answers[1]!(true)
  await silence.over
  assert.ok(isOver(silence))
  t.mock.timers.tick(10 * INTERVAL_MS)
  assert.equal(answers.length, 2)
})

test('begins once for all who had no answer', (t) => {
  const { silence, answers } = listenTo(t)
  silence.begin(performance.now())
  const { over } = silence
  silence.begin(performance.now())
  assert.equal(silence.over, over)
  assert.equal(answers.length, 1)
})

test('does not begin for what was asked before the server said something, and does for what was asked later', async (t) => {
  const { silence, answers } = listenTo(t)
  const askedAt = performance.now()
  silence.begin(askedAt)
  answers[0]!(true)
  await silence.over
  silence.begin(askedAt)
  assert.ok(isOver(silence))
  silence.begin(performance.now())
  assert.equal(answers.length, 2)
})

test('lets go of who waits when it is stopped, and never begins again', async (t) => {
  const { silence, answers } = listenTo(t)
  silence.begin(performance.now())
  const { over } = silence
  silence.stop()
  await over
  answers[0]!(true)
  await new Promise(setImmediate)
  silence.begin(performance.now())
  assert.ok(isOver(silence))
})

test('keeps no process alive', (t) => {
  const silence = new Silence(() => new Promise(() => undefined))
  t.after(() => silence.stop())
  const before = process.getActiveResourcesInfo()
  silence.begin(performance.now())
  assert.deepEqual(process.getActiveResourcesInfo(), before)
})
