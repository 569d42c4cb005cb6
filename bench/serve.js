// The process of one contestant. Plain JavaScript, so that what is timed runs as it is written, with no loader in it.
import { once } from 'node:events'

const [contestant, settings] = process.argv.slice(2)
const { default: listen } = await import(contestant)
const server = await listen(JSON.parse(settings))
// Its connections rest while the others are measured.
server.keepAliveTimeout = 600_000
if (!server.listening) await once(server, 'listening')

process.on('message', () => process.send({ cpu: process.cpuUsage(), rss: process.memoryUsage.rss() }))
process.on('disconnect', () => process.exit())
process.send({ port: server.address().port })
