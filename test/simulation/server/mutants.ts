import type { MutantsByFile } from '../mutants.ts'

export const mutants: MutantsByFile = {
  'src/http/request-queue.ts': [
    [
      'a request does not wait for its turn',
      'if (response.socket !== null || response.writableEnded || !isPausable(socket)) {',
      'if (true) {',
    ],
    [
      'a request that has waited runs in the round of the one before it',
      '    scheduleTask(() => {',
      '    void [1].forEach(() => {',
    ],
    [
      'a request runs after an answer that closes the connection',
      'return isWritable(socketOf(request))',
      'return true',
    ],
    [
      'a connection is not read on once none of its requests waits',
      "socket.off('resume', keepPaused).resume()",
      "socket.off('resume', keepPaused)",
    ],
  ],
  'src/scheduler.ts': [
    [
      'what comes in a round runs in it',
      'promotePending(urgentQueue)\n',
      'promotePending(urgentQueue)\n  promotePending(normalQueue)\n',
    ],
  ],
  'src/http-server/overload-guard.ts': [
    [
      'the guard wakes late',
      'if (totalQueued > MAX_QUEUED) activate()',
      'if (totalQueued > MAX_QUEUED + 10) activate()',
    ],
  ],
  'src/http-server/read-throttle.ts': [
    ['a connection that is read in slices is not read on', "socket.on('resume', scheduleRead)", ''],
  ],
  'src/http-server/connections.ts': [
    ['a client that reads nothing is not cut', 'resetConnection(socket)\n', 'void resetConnection\n'],
    ['a connection is closed while the store is slow', 'else if (isIdle(getConnection(socket)!)) {', 'else {'],
    [
      'an idle connection is closed although a request has come while the process was busy',
      'if (socket.bytesRead === bytesRead) socket.destroy()',
      'socket.destroy()',
    ],
  ],
  'src/http-server/http-server.ts': [
    [
      'a request is late that has come while the process was busy',
      'setTimeout(setImmediate, delayMs, checkAgain).unref()',
      'if (delayMs === 0) checkAgain()\n    else setTimeout(checkAgain, delayMs).unref()',
    ],
    [
      'a drain closes a connection before its last answer',
      'drain.isActive() && connection.latestResponse === response',
      'drain.isActive()',
    ],
    ['a drain closes a connection although another request has come', '    restoreKeepAlive(connection)', ''],
    [
      'a drain closes a connection after the first request of a packet',
      'drain.isActive() ? dispatchLater : dispatchRequest',
      'dispatchRequest',
    ],
  ],
  'src/http-server/reject.ts': [
    ['a refusal does not wait for the answers before it', "else response.once('close', rejectNow)", 'else rejectNow()'],
    ['a refused client has for ever to go', 'setTimeout(() => socket.destroy(), LINGER_MS)', 'undefined'],
  ],
  'src/http-server/drain.ts': [
    ['a drain does not wait for the last connections', '  await closed\n', ''],
    [
      'a drain waits for newcomers though others listen beside it',
      "if (!isPortShared) server.on('connection', trackSocket)",
      "server.on('connection', trackSocket)",
    ],
    [
      'a drain closes a connection whose request has come while the process was busy',
      'void yieldToEventLoop().then(() => closeIdle(server, connections, rejectIdle))',
      'closeIdle(server, connections, rejectIdle)',
    ],
    ['a drain cuts an answer that waits for its client', 'socket.destroy = () => socket', 'void socket'],
  ],
}
