// Code that both Fastify services share: the token check, and the schemas for validation and serialization.
import { hash } from 'node:crypto'
import bearerAuth from '@fastify/bearer-auth'
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

/**
 * @param options.tokens how the token is checked: "text" compares strings, as most hand-written checks do; "plugin" uses
 *   @fastify/bearer-auth, which compares in constant time; "digest" looks up the owner by the SHA-256 digest of the
 *   token, as plant-store does
 */
export async function createApp({ token, unauthorizedBody, options = { tokens: 'text' } }) {
  const app = fastify()
  app.decorateRequest('owner', 'bench')
  if (options.tokens === 'plugin') {
    await app.register(bearerAuth, { keys: new Set([token]), errorResponse: () => unauthorizedBody })
    return app
  }
  const authorization = `Bearer ${token}`
  const digest = (text) => hash('sha256', text, 'base64')
  const owners = new Map([[digest(authorization), 'bench']])
  const find = {
    text: (given) => (given === authorization ? 'bench' : undefined),
    digest: (given) => (given === undefined ? undefined : owners.get(digest(given))),
  }[options.tokens]
  app.addHook('onRequest', (request, reply, done) => {
    request.owner = find(request.headers.authorization)
    if (request.owner !== undefined) return done()
    reply.code(401).header('WWW-Authenticate', 'Bearer error="invalid_token"').send(unauthorizedBody)
  })
  return app
}
