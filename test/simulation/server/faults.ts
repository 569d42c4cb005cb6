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
    name: 'a client that reads nothing is not cut',
    file: `${folder}/connections.ts`,
    code: 'reset(socket)\n',
    instead: 'void reset\n',
  },
  {
    name: 'a connection is closed while the store is slow',
    file: `${folder}/connections.ts`,
    code: 'else if (isSilent(connectionOf(socket)!)) {',
    instead: 'else {',
  },
  {
    name: 'an idle connection is closed although a request has come while the process was busy',
    file: `${folder}/connections.ts`,
    code: 'if (socket.bytesRead === bytesRead) socket.destroy()',
    instead: 'socket.destroy()',
  },
  {
    name: 'a request is late that has come while the process was busy',
    file: `${folder}/http-server.ts`,
    code: 'setTimeout(setImmediate, ms, look).unref()',
    instead: 'if (ms === 0) look()\n    else setTimeout(look, ms).unref()',
  },
  {
    name: 'a refusal does not wait for the answers before it',
    file: `${folder}/refusal.ts`,
    code: "else response.once('close', refuseNow)",
    instead: 'else refuseNow()',
  },
  {
    name: 'a refused client has for ever to go',
    file: `${folder}/refusal.ts`,
    code: 'setTimeout(() => socket.destroy(), LINGER_MS)',
    instead: 'undefined',
  },
  {
    name: 'a drain closes a connection before its last answer',
    file: `${folder}/http-server.ts`,
    code: 'draining !== undefined && connection.latest === response',
    instead: 'draining !== undefined',
  },
  {
    name: 'a drain does not wait for the last connections',
    file: `${folder}/drain.ts`,
    code: '  await closed\n',
    instead: '',
  },
  {
    name: 'a drain waits for newcomers though others listen beside it',
    file: `${folder}/drain.ts`,
    code: "if (!isShared) server.on('connection', watch)",
    instead: "server.on('connection', watch)",
  },
  {
    name: 'a drain closes a connection whose request has come while the process was busy',
    file: `${folder}/drain.ts`,
    code: 'void setImmediate().then(() => closeSilent(server, connections, refuse))',
    instead: 'closeSilent(server, connections, refuse)',
  },
  {
    name: 'a drain cuts an answer that waits for its client',
    file: `${folder}/drain.ts`,
    code: 'socket.destroy = () => socket',
    instead: 'void socket',
  },
]
