import Koa from 'koa'
import { takeFirst, readBody } from '../contestants/helpers.js'

export default function listen({ token, unauthorizedBody }) {
  const authorization = `Bearer ${token}`
  const plants = new Map()
  const app = new Koa()

  app.use((ctx, next) => {
    if (ctx.get('Authorization') === authorization) return next()
    ctx.status = 401
    ctx.set('WWW-Authenticate', 'Bearer error="invalid_token"')
    ctx.body = unauthorizedBody
  })

  // Koa has neither a router nor a body parser. This is the cheapest way to write both by hand.
  app.use(async (ctx) => {
    if (ctx.path === '/plants' && ctx.method === 'GET')
      ctx.body = takeFirst(plants, Number(ctx.query.limit ?? Infinity))
    else if (ctx.path === '/plants' && ctx.method === 'POST') create(ctx, JSON.parse(await bodyOf(ctx.req)))
    else if (ctx.path.startsWith('/plants/') && ctx.method === 'DELETE') remove(ctx, Number(ctx.path.slice(8)))
    else ctx.throw(404)
  })

  function create(ctx, { id, name, tag }) {
    if (plants.has(id)) return fail(ctx, 409, { error: 40900, message: 'The id is taken.' })
    const plant = { name, tag }
    plants.set(id, plant)
    ctx.body = plant
  }

  function remove(ctx, id) {
    if (plants.delete(id)) ctx.status = 204
    else fail(ctx, 404, { error: 40401, message: 'No such plant.' })
  }

  return app.listen(0, '127.0.0.1')
}

function fail(ctx, status, problem) {
  ctx.status = status
  ctx.body = problem
}

function bodyOf(req) {
  return new Promise((resolve) => readBody(req, resolve))
}
