import express from 'express'
import { takeFirst } from '../contestants/helpers.js'

export default function listen({ token, unauthorizedBody }) {
  const authorization = `Bearer ${token}`
  const plants = new Map()
  const app = express()
  // Both cost time, and the benchmark doesn't need them.
  app.disable('etag')
  app.disable('x-powered-by')

  app.use((req, res, next) => {
    if (req.headers.authorization === authorization) return next()
    res.status(401).set('WWW-Authenticate', 'Bearer error="invalid_token"').json(unauthorizedBody)
  })

  app.get('/plants', (req, res) => {
    const limit = Number(req.query.limit ?? Infinity)
    res.json(takeFirst(plants, limit))
  })

  app.post('/plants', express.json(), (req, res) => {
    const { id, name, tag } = req.body
    if (plants.has(id)) return res.status(409).json({ error: 40900, message: 'The id is taken.' })
    const plant = { name, tag }
    plants.set(id, plant)
    res.json(plant)
  })

  app.delete('/plants/:id', (req, res) => {
    if (plants.delete(Number(req.params.id))) res.status(204).end()
    else res.status(404).json({ error: 40401, message: 'No such plant.' })
  })

  return app.listen(0, '127.0.0.1')
}
