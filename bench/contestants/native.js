// What a good engineer would write by hand on node:http, without plant-store's validation.
import { createServer } from 'node:http'
import { takeFirst, readBody, sendJson } from './helpers.js'

export default function listen({ token, unauthorizedBody }) {
  const authorization = `Bearer ${token}`
  const plants = new Map()

  function create(res, text) {
    let id, plant
    try {
      const { id: given, name, tag } = JSON.parse(text)
      id = given
      plant = { name, tag }
    } catch {
      return sendJson(res, 400, { error: 40001, message: 'The body is not JSON.' })
    }
    if (plants.has(id)) return sendJson(res, 409, { error: 40900, message: 'The id is taken.' })
    plants.set(id, plant)
    sendJson(res, 200, plant)
  }

  function remove(res, id) {
    if (plants.delete(id)) res.writeHead(204).end()
    else sendJson(res, 404, { error: 40401, message: 'No such plant.' })
  }

  return createServer((req, res) => {
    if (req.headers.authorization !== authorization) {
      return sendJson(res, 401, unauthorizedBody, { 'WWW-Authenticate': 'Bearer error="invalid_token"' })
    }
    const url = new URL(req.url, 'http://localhost')
    if (url.pathname === '/plants' && req.method === 'GET') {
      sendJson(res, 200, takeFirst(plants, Number(url.searchParams.get('limit') ?? Infinity)))
    } else if (url.pathname === '/plants' && req.method === 'POST') {
      readBody(req, (text) => create(res, text))
    } else if (url.pathname.startsWith('/plants/') && req.method === 'DELETE') {
      remove(res, Number(url.pathname.slice('/plants/'.length)))
    } else {
      sendJson(res, 404, { error: 40400, message: 'There is nothing here.' })
    }
  }).listen(0, '127.0.0.1')
}
