import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { rejectOnBodyRead } from '../../src/http-server/reject.ts'
import { waitUntil } from '../support/wait-until.ts'

test('rejectOnBodyRead clears its timer when the connection closes', async (t) => {
  const timers = new Set<number>()
  const hook = createHook({
    init(id, type) {
      if (type === 'Timeout') timers.add(id)
    },
    destroy(id) {
      timers.delete(id)
    },
  }).enable()
  t.after(() => hook.disable())
  const socket = new Duplex()
  const req = { readableFlowing: null, readableDidRead: false, read: () => null }
  const response = Object.assign(new EventEmitter(), { req, socket, headersSent: false }) as unknown as ServerResponse
  rejectOnBodyRead(response, socket, 2 ** 31 - 1, () => undefined)
  const [grace] = timers
  assert.notEqual(grace, undefined)
  socket.destroy()
  await waitUntil(() => !timers.has(grace!))
})
