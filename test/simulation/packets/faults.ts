import type { Faults } from '../faults.ts'

export const faults: Faults = {
  'src/http/body.ts': [
    ['a body in two packets loses the second', '    body.set(chunk, start)\n', ''],
    ['a body has all of its buffer', 'body.length === length ? body : body.subarray(0, length)', 'body'],
  ],
  'src/http/percent.ts': [['an escape that is none is thrown', 'return undefined\n', "throw new Error('escape')\n"]],
  'src/http/respond.ts': [
    [
      'a request for another protocol keeps its connection',
      "  if (isEndUncertain(request)) response.setHeader('Connection', 'close')\n",
      '',
    ],
  ],
  'src/http/turn.ts': [
    [
      'a request does not wait for its turn',
      'if (response.socket !== null || response.writableEnded || !isPausable(socket)) {',
      'if (true) {',
    ],
    [
      'a connection is not read on once none of its requests waits',
      "socket.off('resume', pause).resume()",
      "socket.off('resume', pause)",
    ],
  ],
  'src/http-server/refusal.ts': [
    ['a refusal does not wait for the answers before it', "else response.once('close', refuseNow)", 'else refuseNow()'],
    [
      'a broken body is refused before its turn',
      'if (req.readableFlowing !== null || req.readableDidRead) return end()',
      'return end()',
    ],
  ],
  'src/http-server/http-server.ts': [
    [
      'a request whose body breaks off runs, and is refused too',
      'if (latest?.req.complete === false) refuseInstead(latest, socket, requestTimeoutMs, refuseNow)',
      'if (latest?.req.complete === false) refuseNow()',
    ],
  ],
  'src/http-server/slices.ts': [
    ['a connection that is read in slices is not read on', "socket.on('resume', readLater)", ''],
  ],
}
