/** Loaded before an example: sends the port of each server that listens to the process that started this one. */
import { Server, type AddressInfo } from 'node:net'

type Emit = (this: Server, event: string, ...args: unknown[]) => boolean

const emit = Reflect.get(Server.prototype, 'emit') as Emit

Server.prototype.emit = function (this: Server, event: string, ...args: unknown[]) {
  if (event === 'listening') process.send!((this.address() as AddressInfo).port)
  return emit.call(this, event, ...args)
}
