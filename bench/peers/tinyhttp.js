import { App } from '@tinyhttp/app'
import { takeFirst, readBody, sendJson } from '../contestants/helpers.js'

export default function listen({ token, unauthorizedBody }) {
  const authorization = `Bearer ${token}`
  const plants = new Map()
  // The X-Powered-By header costs time, and the benchmark doesn't need it.
  const app = new App({ settings: { xPoweredBy: false } })

  // tinyhttp's `json` method indents its output, so responses are serialized by hand.
  app.use((req, res, next) => {
    if (req.headers.authorization === authorization) return next()
    sendJson(res, 401, unauthorizedBody, { 'WWW-Authenticate': 'Bearer error="invalid_token"' })
  })

  app.get('/plants', (req, res) => {
    const limit = Number(req.query.limit ?? Infinity)
    sendJson(res, 200, takeFirst(plants, limit))
  })

  // tinyhttp doesn't parse bodies. This is the cheapest way to parse them by hand.
  app.post('/plants', (req, res) => {
    readBody(req, (text) => {
      const { id, name, tag } = JSON.parse(text)
      if (plants.has(id)) return sendJson(res, 409, { error: 40900, message: 'The id is taken.' })
      const plant = { name, tag }
      plants.set(id, plant)
      sendJson(res, 200, plant)
    })
  })

  app.delete('/plants/:id', (req, res) => {
    if (plants.delete(Number(req.params.id))) res.writeHead(204).end()
    else sendJson(res, 404, { error: 40401, message: 'No such plant.' })
  })

  return app.listen(0, undefined, '127.0.0.1')
}
