import type { MutantsByFile } from '../mutants.ts'

export const mutants: MutantsByFile = {
  'src/http/body.ts': [
    [
      'a body without an end has no timeout',
      'timer = setTimeout(reject, HTTP2_BODY_TIMEOUT_MS, HTTP_ERRORS.requestTimeout)',
      '',
    ],
    [
      'the timer of a reset stream is not cleared',
      'clearTimeout(timer)\n    if (isTruncated(request)) return\n',
      'if (isTruncated(request)) return\n    clearTimeout(timer)\n',
    ],
    ['a late body is accepted when it ends', "off('data', onData).off('end', onEnd)\n", "off('data', onData)\n"],
    ['a rejected body is discarded without a time limit', 'setTimeout(finish, MAX_DISCARD_MS)', 'undefined'],
    ['a DELETE does not wait for the end of its body', 'return !stream.endAfterHeaders', 'return false'],
  ],
  'src/http/transport.ts': [
    [
      'a truncated body is accepted',
      'return (stream.closed || (destroyed === true && isUnread)) && !stream.endAfterHeaders',
      'return false',
    ],
  ],
  'src/http/respond.ts': [
    [
      'a stream whose response is never read stays open',
      'stream.close(stream.writableFinished ? undefined : CANCEL)',
      'stream.close()',
    ],
    ['the stream of a rejected body stays open', '    else if (!request.complete) stream.close(', '    else void ('],
  ],
}
