// Loaded before an example: sends the port of each server that listens to the process that started this one.
import { Server } from 'node:net'

const { emit } = Server.prototype

Server.prototype.emit = function (event, ...args) {
  // Some hosts try a port first, with a server that they close at once.
  if (event === 'listening') setImmediate(() => this.listening && process.send(this.address().port))
  return emit.call(this, event, ...args)
}
