import { createServer } from 'node:http'
import { H3, toNodeHandler } from 'h3'
import { takeFirst } from '../contestants/helpers.js'

export default function listen({ token, unauthorizedBody }) {
  const authorization = `Bearer ${token}`
  const plants = new Map()
  const app = new H3()

  app.use((event, next) => {
    if (event.req.headers.get('Authorization') === authorization) return next()
    event.res.status = 401
    event.res.headers.set('WWW-Authenticate', 'Bearer error="invalid_token"')
    return unauthorizedBody
  })

  app.get('/plants', (event) => {
    const limit = Number(event.url.searchParams.get('limit') ?? Infinity)
    return takeFirst(plants, limit)
  })

  app.post('/plants', async (event) => {
    const { id, name, tag } = await event.req.json()
    if (plants.has(id)) return fail(event, 409, { error: 40900, message: 'The id is taken.' })
    const plant = { name, tag }
    plants.set(id, plant)
    return plant
  })

  app.delete('/plants/:id', (event) => {
    if (!plants.delete(Number(event.context.params.id))) {
      return fail(event, 404, { error: 40401, message: 'No such plant.' })
    }
    event.res.status = 204
    return null
  })

  return createServer(toNodeHandler(app)).listen(0, '127.0.0.1')
}

function fail(event, status, problem) {
  event.res.status = status
  return problem
}
