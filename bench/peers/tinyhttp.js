import { App } from '@tinyhttp/app'
import { takeFirst, readBody, sendJson } from '../contestants/helpers.js'

export default function listen({ token, unauthorizedBody }) {
  const authorization = `Bearer ${token}`
  const plants = new Map()
  // The other header is not asked for here, and costs time.
  const app = new App({ settings: { xPoweredBy: false } })

  // Its own `json` writes with indentation, so it sends by hand.
  app.use((req, res, next) => {
    if (req.headers.authorization === authorization) return next()
    sendJson(res, 401, unauthorizedBody, { 'WWW-Authenticate': 'Bearer error="invalid_token"' })
  })

  app.get('/plants', (req, res) => {
    const limit = Number(req.query.limit ?? Infinity)
    sendJson(res, 200, takeFirst(plants, limit))
  })

  // tinyhttp parses no bodies; this is the cheapest way to do it by hand.
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
