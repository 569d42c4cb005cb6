// What an engineer would write by hand on node:http in half an hour, without plant-store's validation.
import { createServer } from 'node:http'
import { announce, takeFirst, TOKEN } from './shared.js'

const authorization = `Bearer ${TOKEN}`
const plants = new Map()

function sendJson(res, status, value, headers) {
  const body = JSON.stringify(value)
  res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body), ...headers })
  res.end(body)
}

function create(res, text) {
  let id, plant
  try {
    const { name, tag, ...others } = JSON.parse(text)
    id = others.id
    plant = { name, tag }
  } catch {
    return sendJson(res, 400, { error: 40001, message: 'The body is not JSON.' })
  }
  if (plants.has(id)) return sendJson(res, 409, { error: 40900, message: 'The id is in use.' })
  plants.set(id, plant)
  sendJson(res, 200, plant)
}

const server = createServer((req, res) => {
  if (req.headers.authorization !== authorization) {
    const fields = { 'WWW-Authenticate': 'Bearer error="invalid_token"' }
    return sendJson(res, 401, { error: 40101, message: 'The bearer token is invalid.' }, fields)
  }
  const { pathname, searchParams } = new URL(req.url, 'http://localhost')
  if (pathname === '/plants' && req.method === 'GET') {
    sendJson(res, 200, takeFirst(plants, Number(searchParams.get('limit') ?? Infinity)))
  } else if (pathname === '/plants' && req.method === 'POST') {
    const chunks = []
    req.on('data', (chunk) => chunks.push(chunk))
    req.on('end', () => create(res, Buffer.concat(chunks).toString()))
  } else if (pathname.startsWith('/plants/') && req.method === 'DELETE') {
    if (plants.delete(Number(pathname.slice('/plants/'.length)))) res.writeHead(204).end()
    else sendJson(res, 404, { error: 40401, message: 'No such plant.' })
  } else {
    sendJson(res, 404, { error: 40400, message: 'There is nothing here.' })
  }
})
server.listen(0, '127.0.0.1', () => announce(server))
