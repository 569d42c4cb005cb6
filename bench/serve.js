// The server process for one contestant. It's plain JavaScript, so that no loader changes the code that is measured.
import { once } from 'node:events'

const [contestant, settings] = process.argv.slice(2)
const { default: listen } = await import(contestant)
const server = await listen(JSON.parse(settings))
// Don't time out connections that are idle while the other contestants are measured.
server.keepAliveTimeout = 600_000
if (!server.listening) await once(server, 'listening')

process.on('message', () => process.send({ cpu: process.cpuUsage(), rss: process.memoryUsage.rss() }))
process.on('disconnect', () => process.exit())
process.send({ port: server.address().port })
