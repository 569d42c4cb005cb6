import polka from 'polka'
import { takeFirst, readBody, sendJson } from '../contestants/helpers.js'

export default function listen({ token, unauthorizedBody }) {
  const authorization = `Bearer ${token}`
  const plants = new Map()

  const app = polka()
    .use((req, res, next) => {
      if (req.headers.authorization === authorization) return next()
      sendJson(res, 401, unauthorizedBody, { 'WWW-Authenticate': 'Bearer error="invalid_token"' })
    })
    .get('/plants', (req, res) => {
      const limit = Number(req.query.limit ?? Infinity)
      sendJson(res, 200, takeFirst(plants, limit))
    })
    // polka doesn't parse bodies. This is the cheapest way to parse them by hand.
    .post('/plants', (req, res) => {
      readBody(req, (text) => {
        const { id, name, tag } = JSON.parse(text)
        if (plants.has(id)) return sendJson(res, 409, { error: 40900, message: 'The id is taken.' })
        const plant = { name, tag }
        plants.set(id, plant)
        sendJson(res, 200, plant)
      })
    })
    .delete('/plants/:id', (req, res) => {
      if (plants.delete(Number(req.params.id))) res.writeHead(204).end()
      else sendJson(res, 404, { error: 40401, message: 'No such plant.' })
    })

  return app.listen(0, '127.0.0.1').server
}
