import { CREATE, createApp, DELETE, LIST } from './fastify-app.js'
import { takeFirst } from '../contestants/helpers.js'

export default async function listen(settings) {
  const plantsByOwner = new Map([['bench', new Map()]])
  const app = await createApp(settings)
  const keepsText = settings.options?.keepsText === true

  app.get('/plants', LIST, (request, reply) => {
    const { limit = Infinity } = request.query
    const found = takeFirst(plantsByOwner.get(request.owner), limit)
    if (keepsText) reply.type('application/json').serializer(String).send(`[${found.join()}]`)
    else reply.send(found)
  })

  app.post('/plants', CREATE, (request, reply) => {
    const { id, name, tag } = request.body
    const plants = plantsByOwner.get(request.owner)
    if (plants.has(id)) return reply.code(409).send({ error: 40900, message: 'The id is taken.' })
    const plant = { name, tag }
    plants.set(id, keepsText ? JSON.stringify(plant) : plant)
    reply.send(plant)
  })

  app.delete('/plants/:id', DELETE, (request, reply) => {
    if (plantsByOwner.get(request.owner).delete(request.params.id)) reply.code(204).send()
    else reply.code(404).send({ error: 40401, message: 'No such plant.' })
  })

  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server
}
