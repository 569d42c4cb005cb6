import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * Carries out the requests that a connection pipelines one after another (RFC 9112 section 9.3.2). Node announces a
 * request as soon as it has arrived, and gives its response the socket once all earlier ones are answered; after an
 * answer that closes the connection it gives it to none.
 */
export function inTurn(request: IncomingMessage, response: ServerResponse, carryOut: () => void): void {
  if (response.socket !== null) return carryOut()
  response.once('socket', carryOut)
}
