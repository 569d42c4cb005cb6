// Fastify with @fastify/bearer-auth, and schemas for the body, the query, the path and the responses.
import bearerAuth from '@fastify/bearer-auth'
import fastify from 'fastify'
import { announce, takeFirst, TOKEN } from './shared.js'

const text = { type: 'string' }
const Plant = { type: 'object', required: ['name'], properties: { name: text, tag: text } }
const NewPlant = {
  type: 'object',
  required: ['id', 'name'],
  properties: { id: { type: 'integer' }, name: text, tag: text },
}
const Problem = {
  type: 'object',
  required: ['error', 'message'],
  properties: { error: { type: 'integer' }, message: text },
}
const LIST = {
  querystring: { type: 'object', properties: { limit: { type: 'integer', minimum: 0 } } },
  response: { 200: { type: 'array', items: Plant }, 401: Problem },
}
const CREATE = { body: NewPlant, response: { 200: Plant, 401: Problem, 409: Problem } }
const DELETE = {
  params: { type: 'object', properties: { id: { type: 'integer' } } },
  response: { 401: Problem, 404: Problem },
}

const plants = new Map()
const app = fastify()
await app.register(bearerAuth, {
  keys: new Set([TOKEN]),
  errorResponse: () => ({ error: 40101, message: 'The bearer token is invalid.' }),
})

app.get('/plants', { schema: LIST }, (request, reply) => {
  reply.send(takeFirst(plants, request.query.limit ?? Infinity))
})

app.post('/plants', { schema: CREATE }, (request, reply) => {
  const { id, name, tag } = request.body
  if (plants.has(id)) return reply.code(409).send({ error: 40900, message: 'The id is in use.' })
  const plant = { name, tag }
  plants.set(id, plant)
  reply.send(plant)
})

app.delete('/plants/:id', { schema: DELETE }, (request, reply) => {
  if (plants.delete(request.params.id)) reply.code(204).send()
  else reply.code(404).send({ error: 40401, message: 'No such plant.' })
})

await app.listen({ port: 0, host: '127.0.0.1' })
announce(app.server)
