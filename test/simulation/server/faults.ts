import type { Faults } from '../faults.ts'

export const faults: Faults = {
  'src/http/turn.ts': [
    [
      'a request does not wait for its turn',
      'if (response.socket !== null || response.writableEnded || !isPausable(socket)) {',
      'if (true) {',
    ],
    [
      'a request that has waited runs in the round of the one before it',
      '    inLaterRound(() => {',
      '    void [1].forEach(() => {',
    ],
    [
      'a request runs after an answer that closes the connection',
      'return isWritable(socketOf(request))',
      'return true',
    ],
    [
      'a connection is not read on once none of its requests waits',
      "socket.off('resume', pause).resume()",
      "socket.off('resume', pause)",
    ],
  ],
  'src/later-round.ts': [
    ['what comes in a round runs in it', 'advance(urgent)\n', 'advance(urgent)\n  advance(patient)\n'],
  ],
  'src/http-server/guard.ts': [
    ['the guard wakes late', 'if (waiting > MAX_WAITING) wake()', 'if (waiting > MAX_WAITING + 10) wake()'],
  ],
  'src/http-server/slices.ts': [
    ['a connection that is read in slices is not read on', "socket.on('resume', readLater)", ''],
  ],
  'src/http-server/connections.ts': [
    ['a client that reads nothing is not cut', 'reset(socket)\n', 'void reset\n'],
    ['a connection is closed while the store is slow', 'else if (isSilent(connectionOf(socket)!)) {', 'else {'],
    [
      'an idle connection is closed although a request has come while the process was busy',
      'if (socket.bytesRead === bytesRead) socket.destroy()',
      'socket.destroy()',
    ],
  ],
  'src/http-server/http-server.ts': [
    [
      'a request is late that has come while the process was busy',
      'setTimeout(setImmediate, ms, look).unref()',
      'if (ms === 0) look()\n    else setTimeout(look, ms).unref()',
    ],
    [
      'a drain closes a connection before its last answer',
      'draining !== undefined && connection.latest === response',
      'draining !== undefined',
    ],
    ['a drain closes a connection although another request has come', '    keepOpen(connection)', ''],
    [
      'a drain closes a connection after the first request of a packet',
      'draining === undefined ? take : takeLater',
      'take',
    ],
  ],
  'src/http-server/refusal.ts': [
    ['a refusal does not wait for the answers before it', "else response.once('close', refuseNow)", 'else refuseNow()'],
    ['a refused client has for ever to go', 'setTimeout(() => socket.destroy(), LINGER_MS)', 'undefined'],
  ],
  'src/http-server/drain.ts': [
    ['a drain does not wait for the last connections', '  await closed\n', ''],
    [
      'a drain waits for newcomers though others listen beside it',
      "if (!isShared) server.on('connection', watch)",
      "server.on('connection', watch)",
    ],
    [
      'a drain closes a connection whose request has come while the process was busy',
      'void yieldToEventLoop().then(() => closeSilent(server, connections, refuse))',
      'closeSilent(server, connections, refuse)',
    ],
    ['a drain cuts an answer that waits for its client', 'socket.destroy = () => socket', 'void socket'],
  ],
}
