/** Loaded before an example: sends the port of each server that listens to the process that started this one. */
import { Server, type AddressInfo } from 'node:net'

const emit = Server.prototype.emit

Server.prototype.emit = function (this: Server, event: string, ...args: unknown[]) {
  if (event === 'listening') process.send!((this.address() as AddressInfo).port)
  return Reflect.apply(emit, this, [event, ...args]) as boolean
}
