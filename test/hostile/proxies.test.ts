import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { memoryStore } from '../../src/index.ts'
import { createServer } from '../../src/http-server/create-server.ts'
import { findFreePort } from '../support/wire/find-free-port.ts'
import type { CleanupScope } from '../support/child-process.ts'
import { skipWithoutCommand } from '../support/skip-reasons.ts'
import { runHaproxy, startNginx } from '../support/wire/proxies.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { bearer, createService, getPort, sendToPort, serve } from '../support/wire/service.ts'
import { SMUGGLING_PAYLOADS } from './smuggling-payloads.ts'

/** How long an attacker waits for the answer to a request that the proxy takes for half of one. */
const RESPONSE_WAIT_MS = 50

/** Each shares its connections to the program among all clients, and gives each request that it sends an id. */
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
  test(`behind ${name}`, { skip: skipWithoutCommand(name) }, async (t) => {
    /** What the ids of the proxy begin with, so that nobody can forge one. */
    const secret = randomUUID()
    const arrivals: { id: string; marker: string | undefined; socket: Socket }[] = []
    const refused: Buffer[] = []
    let victims = 0

    const store = memoryStore()
    await store.create('victim', { id: 1n, name: 'Monstera' })
    const plants = createService({ store })
    const { server } = createServer(
      (request, response) => {
        const { headers, socket } = request
        // Says which request of a victim it is, and has its answer say so.
        const marker = headers['x-marker']?.toString()
        if (marker !== undefined) response.setHeader('X-Marker', marker)
        arrivals.push({ id: String(headers['x-request-id']), marker, socket })
        plants(request, response)
      },
      // A connection that is closed while the proxy sends a request on it would lose that.
      { keepAliveTimeoutMs: 600_000 },
    )
    server.on('clientError', ({ rawPacket }: Error & { rawPacket?: Buffer }) => {
      if (rawPacket !== undefined) refused.push(rawPacket)
    })
    await serve(t, server)
    const port = await findFreePort()
    await startProxy(t, port, getPort(server), secret)

    async function askAsVictim(): Promise<void> {
      const marker = `victim ${++victims}`
      const fields = [...bearer('victim'), 'X-Marker', marker]
      const { status, headers, body } = await sendToPort(port, { method: 'GET', path: '/plants', fields })
      assert.deepEqual([status, headers['x-marker'], body], [200, marker, '[{"name":"Monstera"}]'])
    }

    for (const { name, bytes } of SMUGGLING_PAYLOADS) {
      await t.test(name, async () => {
        const [firstArrival, firstRefused] = [arrivals.length, refused.length]
        const attacker = await RawConnection.open(port)
        const answered = attacker.send(bytes).waitFor(/HTTP\/1\.[01] [2-5]/)
        await Promise.race([answered.catch(() => undefined), sleep(RESPONSE_WAIT_MS, undefined, { ref: false })])
        // What the proxy sends behind the first request is on its way before these.
        await askAsVictim()
        await askAsVictim()
        attacker.socket.destroy()

        const smuggled = arrivals.slice(firstArrival).filter(({ id }) => !id.startsWith(secret))
        assert.deepEqual(smuggled, [], 'a request reached the program that the proxy did not send')
        const parts = refused.slice(firstRefused).filter((packet) => !packet.includes(secret))
        assert.deepEqual(parts.map(String), [], 'the program took a part of a request for another')
        assert.doesNotMatch(attacker.received, /victim|Monstera/, 'the answer was for another client')
      })
    }

    await t.test('each request reached the program once, and clients shared connections', () => {
      assert.equal(new Set(arrivals.map(({ id }) => id)).size, arrivals.length)
      const ofVictims = new Set(arrivals.filter(({ marker }) => marker !== undefined).map(({ socket }) => socket))
      assert.ok(arrivals.some(({ marker, socket }) => marker === undefined && ofVictims.has(socket)))
    })
  })
}
