import type { Fault } from '../faults.ts'

const folder = 'src/http-server'

export const faults: readonly Fault[] = [
  {
    name: 'a request does not wait for its turn',
    file: 'src/http/turn.ts',
    code: 'if (response.socket !== null || response.writableEnded || socket === null) {',
    instead: 'if (true) {',
  },
  {
    name: 'a request that has waited runs in the round of the one before it',
    file: 'src/http/turn.ts',
    code: '    inLaterRound(() => {',
    instead: '    void [1].forEach(() => {',
  },
  {
    name: 'what comes in a round runs in it',
    file: 'src/later-round.ts',
    code: 'advance(urgent)\n',
    instead: 'advance(urgent)\n  advance(patient)\n',
  },
  {
    name: 'a request runs after an answer that closes the connection',
    file: 'src/http/turn.ts',
    code: 'return socket === null || !(socket.writableEnded || isLost(socket))',
    instead: 'return true',
  },
  {
    name: 'a connection is not read on once none of its requests waits',
    file: 'src/http/turn.ts',
    code: "socket.off('resume', pause).resume()",
    instead: "socket.off('resume', pause)",
  },
  {
    name: 'a connection is read while requests wait',
    file: 'src/http/turn.ts',
    code: "if (before === 0) socket.on('resume', pause).pause()",
    instead: '',
  },
  {
    name: 'the guard counts the requests of connections that are lost',
    file: `${folder}/guard.ts`,
    code: '(waiting -= connection.waiting)',
    instead: '(waiting -= 0)',
  },
  {
    name: 'the guard wakes late',
    file: `${folder}/guard.ts`,
    code: 'if (waiting > MAX_WAITING) wake()',
    instead: 'if (waiting > MAX_WAITING + 10) wake()',
  },
  {
    name: 'a connection that is read in slices is not read on',
    file: `${folder}/slices.ts`,
    code: "socket.on('resume', readLater)",
    instead: '',
  },
  {
    name: 'slices are handed on while requests wait',
    file: `${folder}/slices.ts`,
    code: 'if (isHeldBack(socket) || isBodyWaiting(latest?.req)) return',
    instead: 'if (isBodyWaiting(latest?.req)) return',
  },
  {
    name: 'a client that reads nothing is not cut',
    file: `${folder}/stall.ts`,
    code: 'reset(socket)\n',
    instead: 'void reset\n',
  },
  {
    name: 'a client that reads slowly is cut',
    file: `${folder}/stall.ts`,
    code: 'socket.setTimeout(stallTimeoutMs)',
    instead: 'socket.setTimeout(stallTimeoutMs / 2)',
  },
  {
    name: 'a connection is closed while the store is slow',
    file: `${folder}/stall.ts`,
    code: 'else if (isSilent(connectionOf(socket)!)) socket.destroy()',
    instead: 'else socket.destroy()',
  },
  {
    name: 'a late request is refused though it was held back',
    file: `${folder}/http-server.ts`,
    code: '(isHeldBack(socket) || socket.readableLength > 0)',
    instead: 'false',
  },
  {
    name: 'a refusal does not wait for the answers before it',
    file: `${folder}/refusal.ts`,
    code: "else response.once('close', refuseNow)",
    instead: 'else refuseNow()',
  },
  {
    name: 'a refusal behind an answer is lost if the client has ended its side',
    file: `${folder}/http-server.ts`,
    code: "socket.removeAllListeners('end')",
    instead: '',
  },
  {
    name: 'a refused client has for ever to go',
    file: `${folder}/refusal.ts`,
    code: 'setTimeout(() => socket.destroy(), LINGER_MS)',
    instead: 'undefined',
  },
  {
    name: 'nobody is told to go on',
    file: `${folder}/http-server.ts`,
    code: 'if (!response.headersSent) response.writeContinue()',
    instead: '',
  },
  {
    name: 'an early answer does not say that it closes the connection',
    file: 'src/http/respond.ts',
    code: "if (waits) headers.push('Connection', 'close')",
    instead: '',
  },
  {
    name: 'a drain closes a connection before its last answer',
    file: `${folder}/http-server.ts`,
    code: 'draining !== undefined && connection.latest === response',
    instead: 'draining !== undefined',
  },
  {
    name: 'a drain keeps connections open',
    file: `${folder}/http-server.ts`,
    code: "&& connection.latest === response) response.setHeader('Connection', 'close')",
    instead: ') void 0',
  },
  {
    name: 'a drain does not wait for the last connections',
    file: `${folder}/drain.ts`,
    code: '  await closed\n',
    instead: '',
  },
  {
    name: 'a drain stops listening at once',
    file: `${folder}/drain.ts`,
    code: 'setTimeout(() => void settleIfQuiet(moment), QUIET_MS)',
    instead: 'setTimeout(() => void settleIfQuiet(moment), 1)',
  },
  {
    name: 'a drain waits for newcomers though others listen beside it',
    file: `${folder}/drain.ts`,
    code: "if (!isShared) server.on('connection', watch)",
    instead: "server.on('connection', watch)",
  },
  {
    name: 'a drain cuts an answer that waits for its client',
    file: `${folder}/drain.ts`,
    code: 'socket.destroy = () => socket',
    instead: 'void socket',
  },
  {
    name: 'a drain does not count what it cuts',
    file: `${folder}/drain.ts`,
    code: 'cut = connections.length',
    instead: 'cut = 0',
  },
]
