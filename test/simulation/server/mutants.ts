import type { MutantsByFile } from '../mutants.ts'

export const mutants: MutantsByFile = {
  'src/http/request-queue.ts': [
    [
      'a request does not wait for its turn',
      'if (response.socket !== null || response.writableEnded || !isPausable(socket)) {',
      'if (true) {',
    ],
    [
      'a queued request runs in the same tick as the one before it',
      '    scheduleTask(() => {',
      '    void [1].forEach(() => {',
    ],
    [
      'a request runs after a response that closes the connection',
      'return isWritable(socketOf(request))',
      'return true',
    ],
    [
      'reading does not resume when no request is queued any more',
      "socket.off('resume', keepPaused).resume()",
      "socket.off('resume', keepPaused)",
    ],
  ],
  'src/scheduler.ts': [
    [
      'a task that is scheduled during a tick runs in that tick',
      'promotePending(urgentQueue)\n',
      'promotePending(urgentQueue)\n  promotePending(normalQueue)\n',
    ],
  ],
  'src/http-server/overload-guard.ts': [
    [
      'the guard activates late',
      'if (totalQueued > MAX_QUEUED) activate()',
      'if (totalQueued > MAX_QUEUED + 10) activate()',
    ],
  ],
  'src/http-server/read-throttle.ts': [
    ['a throttled connection is not read after a pause', "socket.on('resume', scheduleRead)", ''],
  ],
  'src/http-server/connections.ts': [
    ['a client that never reads is not disconnected', 'resetConnection(socket)\n', 'void resetConnection\n'],
    ['a connection is closed while the store is slow', 'else if (isIdle(getConnection(socket)!)) {', 'else {'],
    [
      'an idle connection is closed although a request arrived while the process was busy',
      'if (socket.bytesRead === bytesRead) socket.destroy()',
      'socket.destroy()',
    ],
  ],
  'src/http-server/http-server.ts': [
    [
      'a request that arrived while the process was busy counts as late',
      'setTimeout(setImmediate, delayMs, checkAgain).unref()',
      'if (delayMs === 0) checkAgain()\n    else setTimeout(checkAgain, delayMs).unref()',
    ],
    [
      'a drain closes a connection before its last response',
      'drain.isActive() && connection.latestResponse === response',
      'drain.isActive()',
    ],
    ['a drain closes a connection although another request has arrived', '    restoreKeepAlive(connection)', ''],
    [
      'a drain closes a connection after the first request of a packet',
      'drain.isActive() ? dispatchLater : dispatchRequest',
      'dispatchRequest',
    ],
  ],
  'src/http-server/reject.ts': [
    [
      'a rejection does not wait for the pending response',
      "else response.once('close', rejectNow)",
      'else rejectNow()',
    ],
    ['a rejected client can linger without a time limit', 'setTimeout(() => socket.destroy(), LINGER_MS)', 'undefined'],
  ],
  'src/http-server/drain.ts': [
    ['a drain does not wait for the last connections', '  await closed\n', ''],
    [
      'a drain on a shared port waits for new connections',
      "if (!isPortShared) server.on('connection', trackSocket)",
      "server.on('connection', trackSocket)",
    ],
    [
      'a drain closes a connection whose request arrived while the process was busy',
      'void yieldToEventLoop().then(() => closeIdle(server, connections, rejectIdle))',
      'closeIdle(server, connections, rejectIdle)',
    ],
    ['a drain truncates a response that its client is still reading', 'socket.destroy = () => socket', 'void socket'],
  ],
}
