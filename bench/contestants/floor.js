// The minimum cost of a request on node:http: reads the request, and sends a response that was prepared at startup.
import { createServer } from 'node:http'
import { announce, TOKEN } from './shared.js'

const PLANT = { name: 'Monstera deliciosa', tag: 'tropical' }
const BODIES = new Map([10, 100].map((limit) => [`/plants?limit=${limit}`, prepare(Array(limit).fill(PLANT))]))
const CREATED = prepare(PLANT)
const UNAUTHORIZED = prepare({ error: 40101, message: 'The bearer token is invalid.' })

function prepare(value) {
  const body = JSON.stringify(value)
  return { headers: ['Content-Type', 'application/json', 'Content-Length', String(body.length)], body }
}

function send(res, status, { headers, body }) {
  res.writeHead(status, headers).end(body)
}

const server = createServer((req, res) => {
  if (req.method === 'DELETE') res.writeHead(204).end()
  else if (req.method === 'POST') req.resume().on('end', () => send(res, 200, CREATED))
  else if (req.headers.authorization.endsWith(TOKEN)) send(res, 200, BODIES.get(req.url) ?? CREATED)
  else send(res, 401, UNAUTHORIZED)
})
server.listen(0, '127.0.0.1', () => announce(server))
