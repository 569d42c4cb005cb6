// Preloaded into an example: reports the port of each listening server to the parent process.
import { Server } from 'node:net'

const { emit } = Server.prototype

Server.prototype.emit = function (event, ...args) {
  // Some frameworks first probe a port with a server that they close immediately.
  if (event === 'listening') setImmediate(() => this.listening && process.send(this.address().port))
  return emit.call(this, event, ...args)
}
