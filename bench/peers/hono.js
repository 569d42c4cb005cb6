import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { takeFirst } from '../contestants/helpers.js'

export default function listen({ token, unauthorizedBody }) {
  const authorization = `Bearer ${token}`
  const plants = new Map()
  const app = new Hono()

  app.use(async (c, next) => {
    if (c.req.header('Authorization') === authorization) return next()
    return c.json(unauthorizedBody, 401, { 'WWW-Authenticate': 'Bearer error="invalid_token"' })
  })

  app.get('/plants', (c) => {
    const limit = Number(c.req.query('limit') ?? Infinity)
    return c.json(takeFirst(plants, limit))
  })

  app.post('/plants', async (c) => {
    const { id, name, tag } = await c.req.json()
    if (plants.has(id)) return c.json({ error: 40900, message: 'The id is taken.' }, 409)
    const plant = { name, tag }
    plants.set(id, plant)
    return c.json(plant)
  })

  app.delete('/plants/:id', (c) => {
    if (plants.delete(Number(c.req.param('id')))) return c.body(null, 204)
    return c.json({ error: 40401, message: 'No such plant.' }, 404)
  })

  return serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
}
