import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { chain, callSafely, withDeadline } from '../src/maybe-promise.ts'
import { countTimers } from './support/event-loop.ts'

const fault = new Error('a fault')
const timeoutError = new Error('too late')

/** A thenable that settles like the promise, but isn't a `Promise`. */
function toThenable<T>(promise: Promise<T>): PromiseLike<T> {
  return { then: (...args) => promise.then(...args) }
}

/** A thenable that resolves to another promise. Native promises adopt the state of the other promise instead. */
function toNestedThenable<T>(promise: Promise<T>): PromiseLike<T> {
  return { then: (resolve) => resolve?.(promise as T) as never }
}

suite('withDeadline', () => {
  test('returns synchronous results immediately, without a timer', () => {
    const before = countTimers()
    for (const result of [undefined, null, 0, 'text', { then: 'later' }]) {
      assert.equal(
        withDeadline<unknown>(result, 60_000, () => timeoutError),
        result,
      )
    }
    assert.equal(countTimers(), before)
  })

  for (const [name, wrap] of [
    ['a promise', <T>(promise: Promise<T>) => promise],
    ['a thenable', toThenable],
    ['a thenable that resolves to a promise', toNestedThenable],
  ] as const) {
    test(`settles like ${name}, or rejects after the timeout`, async () => {
      const before = countTimers()
      assert.equal(await withDeadline(wrap(Promise.resolve(7)), 60_000, () => timeoutError), 7)
      await assert.rejects(async () => withDeadline(wrap(Promise.reject(fault)), 60_000, () => timeoutError), fault)
      assert.equal(countTimers(), before)
      const never = wrap(new Promise<never>(() => undefined))
      const start = performance.now()
      await assert.rejects(async () => withDeadline(never, 50, () => timeoutError), timeoutError)
      assert.ok(performance.now() - start >= 49)
    })
  }
})

test('chain calls back synchronously only for plain values', async () => {
  assert.equal(
    chain(20, (value) => value + 1),
    21,
  )
  const later = chain(Promise.resolve(20), (value) => value + 1)
  assert.ok(later instanceof Promise)
  assert.equal(await later, 21)
})

test('chain waits for a thenable or cross-realm promise wrapped by withDeadline', async () => {
  const promise = runInNewContext('Promise.resolve(20)') as Promise<number>
  for (const result of [promise, toThenable(Promise.resolve(20))]) {
    const limited = withDeadline(result, 10_000, () => fault)
    assert.equal(await chain(limited, (value) => value + 1), 21)
  }
})

test('chain waits for a native promise while globalThis.Promise is replaced', async (t) => {
  const { Promise: native } = globalThis
  t.after(() => (globalThis.Promise = native))
  globalThis.Promise = class<T> extends native<T> {}
  const limited = withDeadline(native.resolve(20), 10_000, () => fault)
  const later = chain(limited, (value) => value + 1)
  globalThis.Promise = native
  assert.equal(await later, 21)
})

suite('callSafely', () => {
  const fail = (): never => {
    throw fault
  }
  for (const [name, call] of [
    ['a thrown error', fail],
    ['the rejection of a promise', () => Promise.reject(fault)],
    ['the rejection of a thenable', () => toThenable(Promise.reject(fault))],
    ['the rejection of a thenable that resolves to a rejected promise', () => toNestedThenable(Promise.reject(fault))],
  ] as const) {
    test(`passes ${name} to the error callback`, async () => {
      const caught = await new Promise((resolve) => callSafely(call, resolve))
      assert.equal(caught, fault)
    })
  }

  test('reports no error if the call succeeds', async () => {
    const errors: unknown[] = []
    for (const result of [undefined, null, 7, Promise.resolve(7)]) {
      const call = (): unknown => result
      callSafely(call, (error) => errors.push(error))
    }
    await Promise.resolve()
    assert.deepEqual(errors, [])
  })
})
