import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request, type ClientRequest, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { text } from 'node:stream/consumers'
import { programsOf, readDocument } from '../support/package/documents.ts'
import { skipExample, startExample } from '../support/package/examples.ts'
import { sendTo } from '../support/wire/service.ts'
import { until } from '../support/until.ts'
import { newPath, open } from '../support/database/sqlite-file.ts'

const EXAMPLES = programsOf(readDocument('docs/hosts.md')).filter(({ heading }) => heading.startsWith('Stop a server'))
const HEADERS = { Authorization: 'Bearer a-long-random-token', 'Content-Type': 'application/json' }
const CLIENTS = 20

/** Begins to create a plant; the body is still to come. */
function begin(port: number, agent: Agent): ClientRequest {
  return request({ agent, host: '127.0.0.1', port, method: 'POST', path: '/plants', headers: HEADERS })
}

/** Sends the body of what has begun, and settles with the status and whether the connection goes on. */
async function finish(sent: ClientRequest, id: number): Promise<[status: number | undefined, isOpen: boolean]> {
  sent.end(`{"id":${id},"name":"Fern"}`)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  await text(response)
  return [response.statusCode, response.headers.connection !== 'close']
}

for (const { code: example, language } of EXAMPLES) {
  test(
    `a server of a host ends without losing a request: ${language}`,
    { skip: skipExample(example), timeout: 60_000 },
    async (t) => {
      const path = newPath(t).replace('plants.db', 'kept.db')
      const code = example.replace('plants.db', path).replace('7000', '500')
      const { port, child } = await startExample(t, code)
      const exited = once(child, 'exit')
      let id = 0

      /** Creates plants on one connection until it is told to go. */
      async function work(): Promise<void> {
        const agent = new Agent({ keepAlive: true, maxSockets: 1 })
        for (let isOpen = true; isOpen;) {
          const [status, goesOn] = await finish(begin(port, agent), ++id)
          assert.equal(status, 200)
          isOpen = goesOn
          if (id === 200) child.kill('SIGTERM')
        }
        agent.destroy()
      }
      const slow = begin(port, new Agent())
      slow.flushHeaders()
      await Promise.all(Array.from({ length: CLIENTS }, work))

      // The server no longer listens, and this request is still under way.
      await until(async () => !(await isListening(port)))
      assert.deepEqual(await finish(slow, ++id), [200, false])
      assert.deepEqual(await exited, [0, null])
      const [row] = open(t, path).prepare('SELECT count(*) AS plants FROM plants').all() as [{ plants: number }]
      assert.equal(row.plants, id)
    },
  )
}

function isListening(port: number): Promise<boolean> {
  return sendTo(port, { method: 'OPTIONS', path: '/plants', fields: [] }).then(
    () => true,
    () => false,
  )
}
