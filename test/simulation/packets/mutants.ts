import type { MutantsByFile } from '../mutants.ts'

export const mutants: MutantsByFile = {
  'src/http/body.ts': [
    ['a body in two packets loses the second', '    body.set(chunk, offset)\n', ''],
    ['a body has all of its buffer', 'body.length === length ? body : body.subarray(0, length)', 'body'],
  ],
  'src/http/percent-encoding.ts': [
    ['an escape that is none is thrown', 'return undefined\n', "throw new Error('escape')\n"],
  ],
  'src/http/respond.ts': [
    [
      'a request for another protocol keeps its connection',
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
      'a connection is not read on once none of its requests waits',
      "socket.off('resume', keepPaused).resume()",
      "socket.off('resume', keepPaused)",
    ],
  ],
  'src/http-server/reject.ts': [
    ['a refusal does not wait for the answers before it', "else response.once('close', rejectNow)", 'else rejectNow()'],
    [
      'a broken body is refused before its turn',
      'if (hasStartedReading) return rejectOrClose()',
      'return rejectOrClose()',
    ],
  ],
  'src/http-server/http-server.ts': [
    [
      'a request whose body breaks off runs, and is refused too',
      'if (latestResponse?.req.complete === false) rejectOnBodyRead(latestResponse, socket, requestTimeoutMs, rejectNow)',
      'if (latestResponse?.req.complete === false) rejectNow()',
    ],
  ],
  'src/http-server/read-throttle.ts': [
    ['a connection that is read in slices is not read on', "socket.on('resume', scheduleRead)", ''],
  ],
}
