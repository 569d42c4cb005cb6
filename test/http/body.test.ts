import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { suite, test } from 'node:test'
import { RawConnection } from '../support/raw-connection.ts'
import { createService, portOf, serve } from '../support/service.ts'

suite('a request that announces no body is read as an empty one', () => {
  for (const optimizeEmptyRequests of [false, true]) {
    test(`by a server with optimizeEmptyRequests: ${optimizeEmptyRequests}`, async (t) => {
      const server = await serve(t, createServer({ optimizeEmptyRequests }, createService()))
      const connection = await RawConnection.open(portOf(server))
      const fields = 'Host: a\r\nAuthorization: Bearer ada\r\nContent-Type: application/json\r\nConnection: close\r\n'
      connection.send(`POST /plants HTTP/1.1\r\n${fields}\r\n`)
      assert.match(await connection.closed, /^HTTP\/1\.1 400 [^]*"The body is empty: expected a value at byte 0\."}$/)
    })
  }
})
