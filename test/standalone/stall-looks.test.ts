import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, Socket } from 'node:net'
import { suite, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { cutStalled, type Pace } from '../../src/standalone/stall.ts'
import { heapUsed } from '../support/heap.ts'
import { portOf, serve } from '../support/service.ts'
import { handOver, hold, watch } from '../support/watched-connection.ts'

const STALL_TIMEOUT_MS = 41
/** A quarter of it, rounded up. */
const LOOK_MS = 11
const PACE: Pace = { stallTimeoutMs: STALL_TIMEOUT_MS, minBytesPerSecond: 1_000_000 }
/** How many bytes are due from one look to the next. */
const DUE = 1000 * LOOK_MS
const NO_PACE: Pace = { stallTimeoutMs: STALL_TIMEOUT_MS, minBytesPerSecond: 0 }

/** Whether the connection is cut after each of so many looks. */
async function looks(count: number, look: (i: number) => Promise<boolean>): Promise<boolean[]> {
  const cuts: boolean[] = []
  for (let i = 0; i < count; i++) cuts.push(await look(i))
  return cuts
}

/** What `looks` gives if the connection is cut after the last look, or not at all. */
function atLast(count: number, isCut: boolean): boolean[] {
  return [...new Array<boolean>(count - 1).fill(false), isCut]
}

suite('a client that takes nothing is cut at', () => {
  for (const [name, count, held] of [
    ['the fourth look that finds the same, if the kernel says what it holds', 5, 1000],
    ['the sixteenth, if it does not', 17, undefined],
  ] as const) {
    test(name, async (t) => {
      const { socket, look } = await watch(t, NO_PACE)
      hold(socket)
      assert.deepEqual(await looks(count, () => look(held)), atLast(count, true))
    })
  }

  test('the fourth look even if ever more waits for it', async (t) => {
    const { socket, look } = await watch(t, NO_PACE)
    const addAndLook = (): Promise<boolean> => {
      hold(socket)
      return look(1000)
    }
    assert.deepEqual(await looks(5, addAndLook), atLast(5, true))
  })
})

suite('a look that finds a change is the first of a row', () => {
  test('if the kernel holds less', async (t) => {
    const { socket, look } = await watch(t, NO_PACE)
    hold(socket)
    assert.deepEqual(await looks(4, () => look(1000)), atLast(4, false))
    assert.deepEqual(await looks(5, () => look(999)), atLast(5, true))
  })

  test('if it holds as much, and has taken more from this process', async (t) => {
    const { socket, look } = await watch(t, NO_PACE)
    hold(socket)
    assert.deepEqual(await looks(4, () => look(1000)), atLast(4, false))
    await handOver(socket)
    hold(socket)
    assert.deepEqual(await looks(5, () => look(1000)), atLast(5, true))
  })
})

suite('a client that must take some', () => {
  for (const [name, missing, isCut] of [
    ['is not cut if it falls behind by what is due in a stall time-out, and by what waits', 0, false],
    ['is cut if it falls behind by a byte more', 1, true],
  ] as const) {
    test(name, async (t) => {
      const { socket, look } = await watch(t, PACE)
      hold(socket)
      let held = 2_000_000
      await look(held)
      // What it takes beyond what is due does not count later.
      assert.equal(await look((held -= 1_000_000)), false)
      // It may fall behind by 41,100 bytes, and falls behind by 40,000 now, 10,000 a look.
      assert.deepEqual(await looks(4, () => look((held -= DUE - 10_000))), atLast(4, false))
      assert.equal(await look((held -= DUE - 1100 - missing)), isCut)
    })
  }

  test('is not cut if it takes just what is due', async (t) => {
    const { socket, look } = await watch(t, PACE)
    hold(socket)
    assert.deepEqual(await looks(10, (i) => look(1_000_000 - i * DUE)), atLast(10, false))
  })

  test('is not cut if the looks are late and it takes what is due in the time of two', async (t) => {
    const { socket, look } = await watch(t, PACE)
    hold(socket)
    const lookLate = (i: number): Promise<boolean> => look(1_000_000 - i * 2 * DUE, { afterMs: 1000 })
    assert.deepEqual(await looks(10, lookLate), atLast(10, false))
  })

  test('is not cut if it takes each response whole, however few they are', async (t) => {
    const { socket, pass, look } = await watch(t, PACE)
    const takeAndLook = async (): Promise<boolean> => {
      await handOver(socket)
      pass(LOOK_MS)
      hold(socket)
      return look(1000)
    }
    assert.deepEqual(await looks(10, takeAndLook), atLast(10, false))
  })

  test('is not cut for bytes that go to the kernel while it is asked', async (t) => {
    const { socket, look } = await watch(t, PACE)
    hold(socket, 100_000)
    await look(1000)
    const meanwhile = async (): Promise<void> => {
      await handOver(socket)
      hold(socket)
    }
    assert.equal(await look(101_000, { meanwhile }), false)
    assert.equal(await look(101_000), false)
  })
})

test('a client that may take as little as it likes is not cut, whatever the kernel says', async (t) => {
  const { socket, look } = await watch(t, NO_PACE)
  hold(socket)
  assert.deepEqual(await looks(10, (i) => look(i * 1_000_000)), atLast(10, false))
})

suite('the kernel is not asked', () => {
  test('before a quarter of the stall time-out is over, rounded up', async (t) => {
    const { socket, pass, asked } = await watch(t, NO_PACE)
    hold(socket)
    pass(LOOK_MS - 1)
    assert.equal(asked(), 0)
    pass(1)
    assert.equal(asked(), 1)
  })

  test('if nothing waits for a client', async (t) => {
    const { pass, asked } = await watch(t, NO_PACE)
    pass(LOOK_MS)
    assert.equal(asked(), 0)
  })

  test('while it has not answered', async (t) => {
    const { socket, look, pass, asked } = await watch(t, NO_PACE)
    hold(socket)
    await look(1000, { meanwhile: () => pass(10 * LOOK_MS) })
    assert.equal(asked(), 1)
    await look(1000)
    assert.equal(asked(), 2)
  })

  test('once the server has closed, even about a connection that it is given then', async (t) => {
    const { server, socket, pass, asked } = await watch(t, NO_PACE)
    server.close()
    socket.destroy()
    await once(server, 'close')
    const late = new Socket()
    server.emit('connection', late)
    hold(late)
    pass(LOOK_MS)
    assert.equal(asked(), 0)
  })
})

test('a connection that has closed is not kept', async (t) => {
  const server = await serve(t, createServer())
  cutStalled(server, NO_PACE)
  const openAndClose = async (): Promise<WeakRef<Socket>> => {
    connect(portOf(server), '127.0.0.1').end()
    const [socket] = (await once(server, 'connection')) as [Socket]
    await once(socket, 'close')
    return new WeakRef(socket)
  }
  const closed = await openAndClose()
  await setImmediate()
  heapUsed()
  assert.equal(closed.deref(), undefined)
})
