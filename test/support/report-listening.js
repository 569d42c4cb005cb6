// Loaded before an example: sends the port of each server that listens to the process that started this one.
import { Server } from 'node:net'

const { emit } = Server.prototype

Server.prototype.emit = function (event, ...args) {
  if (event === 'listening') process.send(this.address().port)
  return emit.call(this, event, ...args)
}
