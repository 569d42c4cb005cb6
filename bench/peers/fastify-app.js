// What both services on Fastify have in common: the token check, and the schemas for validator and serializer.
import fastify from 'fastify'

const Plant = {
  type: 'object',
  required: ['name'],
  properties: { name: { type: 'string' }, tag: { type: 'string' } },
}
const NewPlant = {
  type: 'object',
  required: ['id', 'name'],
  properties: { id: { type: 'integer' }, name: { type: 'string' }, tag: { type: 'string' } },
}
const Problem = {
  type: 'object',
  required: ['error', 'message'],
  properties: { error: { type: 'integer' }, message: { type: 'string' } },
}

export const LIST = {
  schema: {
    querystring: { type: 'object', properties: { limit: { type: 'integer', minimum: 0 } } },
    response: { 200: { type: 'array', items: Plant }, 401: Problem },
  },
}
export const CREATE = { schema: { body: NewPlant, response: { 200: Plant, 401: Problem, 409: Problem } } }
export const DELETE = {
  schema: {
    params: { type: 'object', properties: { id: { type: 'integer' } } },
    response: { 401: Problem, 404: Problem },
  },
}

export function createApp({ token, refusal }) {
  const authorization = `Bearer ${token}`
  const app = fastify()
  app.addHook('onRequest', (request, reply, done) => {
    if (request.headers.authorization === authorization) return done()
    reply.code(401).header('WWW-Authenticate', 'Bearer error="invalid_token"').send(refusal)
  })
  return app
}
