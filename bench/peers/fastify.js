import fastify from 'fastify'
import { NewPlant, Plant, Problem } from './fastify-schemas.js'

export default async function listen({ token, refusal }) {
  const authorization = `Bearer ${token}`
  const plants = new Map()
  const app = fastify()

  app.addHook('onRequest', (request, reply, done) => {
    if (request.headers.authorization === authorization) return done()
    reply.code(401).header('WWW-Authenticate', 'Bearer error="invalid_token"').send(refusal)
  })

  app.get('/plants', {
    schema: {
      querystring: { type: 'object', properties: { limit: { type: 'integer', minimum: 0 } } },
      response: { 200: { type: 'array', items: Plant }, 401: Problem },
    },
  }, (request, reply) => {
    const { limit = Infinity } = request.query
    const page = []
    for (const plant of plants.values()) {
      if (page.length >= limit) break
      page.push(plant)
    }
    reply.send(page)
  })

  app.post('/plants', {
    schema: { body: NewPlant, response: { 200: Plant, 401: Problem, 409: Problem } },
  }, (request, reply) => {
    const { id, name, tag } = request.body
    if (plants.has(id)) return reply.code(409).send({ error: 40900, message: 'The id is taken.' })
    const plant = { name, tag }
    plants.set(id, plant)
    reply.send(plant)
  })

  app.delete('/plants/:id', {
    schema: {
      params: { type: 'object', properties: { id: { type: 'integer' } } },
      response: { 401: Problem, 404: Problem },
    },
  }, (request, reply) => {
    if (plants.delete(request.params.id)) reply.code(204).send()
    else reply.code(404).send({ error: 40401, message: 'No such plant.' })
  })

  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server
}
