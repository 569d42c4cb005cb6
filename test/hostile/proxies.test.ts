import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { memoryStore } from '../../src/index.ts'
import { createServer } from '../../src/http-server/create-server.ts'
import { findFreePort } from '../support/find-free-port.ts'
import type { CleanupScope } from '../support/child-process.ts'
import { skipWithoutCommand } from '../support/skip-reasons.ts'
import { runHaproxy, startNginx } from '../support/proxies.ts'
import { RawConnection } from '../support/raw-connection.ts'
import { bearer, createService, getPort, sendToPort, serve } from '../support/service.ts'
import { SMUGGLING_PAYLOADS } from './smuggling-payloads.ts'

/** How long an attacker waits for a response, which doesn't arrive if the proxy considers the request incomplete. */
const RESPONSE_WAIT_MS = 50

/** Proxies that share their upstream connections among all clients, and add a secret id to each request. */
const PROXIES = {
  nginx: (t: CleanupScope, port: number, program: number, secret: string) =>
    startNginx(
      t,
      port,
      `upstream plants {
        server 127.0.0.1:${program};
        keepalive 2;
      }
      server {
        listen 127.0.0.1:${port};
        location / {
          proxy_pass http://plants;
          proxy_http_version 1.1;
          proxy_set_header Connection "";
          proxy_set_header X-Request-Id ${secret}$request_id;
          proxy_next_upstream off;
          proxy_request_buffering off;
        }
      }`,
    ),
  haproxy: (t: CleanupScope, port: number, program: number, secret: string) =>
    runHaproxy(
      t,
      port,
      `defaults
        mode http
        retries 0
        timeout connect 1m
        timeout client 1m
        timeout server 1m
      frontend clients
        bind 127.0.0.1:${port}
        default_backend plants
      backend plants
        http-reuse always
        http-request set-header X-Request-Id ${secret}%[uuid()]
        server plants 127.0.0.1:${program}`,
    ),
}

for (const [name, startProxy] of Object.entries(PROXIES)) {
  test(`resists request smuggling behind ${name}`, { skip: skipWithoutCommand(name) }, async (t) => {
    /** The prefix of the proxy's request IDs, so that no client can forge one. */
    const secret = randomUUID()
    const arrivals: { id: string; marker: string | undefined; socket: Socket }[] = []
    const rejected: Buffer[] = []
    let victims = 0

    const store = memoryStore()
    await store.create('victim', { id: 1n, name: 'Monstera' })
    const plants = createService({ store })
    const { server } = createServer(
      (request, response) => {
        const { headers, socket } = request
        // Identifies a request of the victim, and its response.
        const marker = headers['x-marker']?.toString()
        if (marker !== undefined) response.setHeader('X-Marker', marker)
        arrivals.push({ id: String(headers['x-request-id']), marker, socket })
        plants(request, response)
      },
      // A connection that closes while the proxy sends a request would lose that request.
      { keepAliveTimeoutMs: 600_000 },
    )
    server.on('clientError', ({ rawPacket }: Error & { rawPacket?: Buffer }) => {
      if (rawPacket !== undefined) rejected.push(rawPacket)
    })
    await serve(t, server)
    const port = await findFreePort()
    await startProxy(t, port, getPort(server), secret)

    async function listAsVictim(): Promise<void> {
      const marker = `victim ${++victims}`
      const fields = [...bearer('victim'), 'X-Marker', marker]
      const { status, headers, body } = await sendToPort(port, { method: 'GET', path: '/plants', fields })
      assert.deepEqual([status, headers['x-marker'], body], [200, marker, '[{"name":"Monstera"}]'])
    }

    for (const payload of SMUGGLING_PAYLOADS) {
      await t.test(`prevents request smuggling through ${payload.name} (${name})`, async () => {
        const [firstArrival, firstRejected] = [arrivals.length, rejected.length]
        const attacker = await RawConnection.open(port)
        const responded = attacker.send(payload.bytes).waitFor(/HTTP\/1\.[01] [2-5]/)
        await Promise.race([responded.catch(() => undefined), sleep(RESPONSE_WAIT_MS, undefined, { ref: false })])
        // If the proxy forwards a second request from the attacker, the server receives that request before these lists.
        await listAsVictim()
        await listAsVictim()
        attacker.socket.destroy()

        const smuggled = arrivals.slice(firstArrival).filter(({ id }) => !id.startsWith(secret))
        assert.deepEqual(smuggled, [], 'the server received a request that the proxy did not send')
        const parts = rejected.slice(firstRejected).filter((packet) => !packet.includes(secret))
        assert.deepEqual(parts.map(String), [], 'the server parsed a part of a request as another request')
        assert.doesNotMatch(attacker.received, /victim|Monstera/, 'the attacker got the response for another client')
      })
    }

    await t.test(`receives each request exactly once over shared connections (${name})`, () => {
      assert.equal(new Set(arrivals.map(({ id }) => id)).size, arrivals.length)
      const victimSockets = new Set(arrivals.filter(({ marker }) => marker !== undefined).map(({ socket }) => socket))
      assert.ok(arrivals.some(({ marker, socket }) => marker === undefined && victimSockets.has(socket)))
    })
  })
}
