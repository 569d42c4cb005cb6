import type { MutantsByFile } from '../mutants.ts'

export const mutants: MutantsByFile = {
  'src/http/body.ts': [
    ['a body in two packets loses the second', '    body.set(chunk, offset)\n', ''],
    [
      'a body includes the unused end of its buffer',
      'body.length === length ? body : body.subarray(0, length)',
      'body',
    ],
  ],
  'src/http/percent-encoding.ts': [
    ['a malformed percent-escape throws', 'return undefined\n', "throw new Error('escape')\n"],
  ],
  'src/http/respond.ts': [
    [
      'a request with ambiguous framing keeps its connection open',
      "  if (hasAmbiguousFraming(request)) response.setHeader('Connection', 'close')\n",
      '',
    ],
  ],
  'src/http/request-queue.ts': [
    [
      'a request does not wait for its turn',
      'if (response.socket !== null || response.writableEnded || !isPausable(socket)) {',
      'if (true) {',
    ],
    [
      'reading does not resume when no request is queued any more',
      "socket.off('resume', keepPaused).resume()",
      "socket.off('resume', keepPaused)",
    ],
  ],
  'src/http-server/reject.ts': [
    [
      'a rejection does not wait for the pending response',
      "else response.once('close', rejectNow)",
      'else rejectNow()',
    ],
    [
      'a malformed body is rejected before the listener reads it',
      'if (hasStartedReading) return rejectOrClose()',
      'return rejectOrClose()',
    ],
  ],
  'src/http-server/http-server.ts': [
    [
      'a request with a malformed body is handled and rejected as well',
      'if (latestResponse?.req.complete === false) rejectOnBodyRead(latestResponse, socket, requestTimeoutMs, rejectNow)',
      'if (latestResponse?.req.complete === false) rejectNow()',
    ],
  ],
  'src/http-server/read-throttle.ts': [
    ['a throttled connection is not read after a pause', "socket.on('resume', scheduleRead)", ''],
  ],
}
