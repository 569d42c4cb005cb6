import { CREATE, createApp, DELETE, LIST } from './fastify-app.js'
import { firstOf } from '../contestants/by-hand.js'

export default async function listen(settings) {
  const plants = new Map()
  const app = createApp(settings)

  app.get('/plants', LIST, (request, reply) => {
    const { limit = Infinity } = request.query
    reply.send(firstOf(plants, limit))
  })

  app.post('/plants', CREATE, (request, reply) => {
    const { id, name, tag } = request.body
    if (plants.has(id)) return reply.code(409).send({ error: 40900, message: 'The id is taken.' })
    const plant = { name, tag }
    plants.set(id, plant)
    reply.send(plant)
  })

  app.delete('/plants/:id', DELETE, (request, reply) => {
    if (plants.delete(request.params.id)) reply.code(204).send()
    else reply.code(404).send({ error: 40401, message: 'No such plant.' })
  })

  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server
}
