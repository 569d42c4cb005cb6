import type { MutantsByFile } from '../mutants.ts'

export const mutants: MutantsByFile = {
  'src/client/plant-client.ts': [
    [
      'any plant with the id counts as created',
      'plant.id === id && plant.name === name && plant.tag === tag',
      'plant.id === id',
    ],
    ['the tag of the existing plant is ignored', ' && plant.tag === tag)', ')'],
    ['the first 40900 is a success', 'error.error === 40900 && error.isOutcomeUnknown', 'error.error === 40900'],
    ['a 40900 after a retry is an error', 'error.error === 40900 &&', 'error.error === 40901 &&'],
    ['the first 40401 is a success', 'error.error === 40401 && error.isOutcomeUnknown', 'error.error === 40401'],
    ['a list ends after its first page', 'cursor = next ??', 'cursor = undefined ??'],
    ['limit counts pages instead of plants', 'remaining -= plants.length', 'remaining -= 1'],
  ],
  'src/client/request-sender.ts': [
    [
      'a lost response has no effect',
      'error === 50300 || status === 501 || (status < 500 && !ok) : !isSent',
      'true : true',
    ],
    ['50301 has no effect', 'error === 50300 ||', 'status === 503 ||'],
    [
      'only the last attempt determines whether the outcome is unknown',
      'isOutcomeUnknown ||= method',
      'isOutcomeUnknown = method',
    ],
    ['the outcome of a list can be unknown', "method !== 'GET' && !hadNoEffect", '!hadNoEffect'],
    ['50000 is retried', '[408, 429, 502', '[408, 429, 500, 502'],
    ['a redirect is retried', '[408, 429, 502', '[302, 408, 429, 502'],
    ['one retry too many', 'retry >= retries', 'retry > retries'],
    ['no backoff', 'MIN_DELAY_MS = 250', 'MIN_DELAY_MS = 10'],
    ['Retry-After is ignored', "parseRetryAfter(response?.headers.get('Retry-After'))", '0'],
    ['Retry-After has no limit', 'MAX_DELAY_MS)', 'Infinity)'],
    ['a token is renewed endlessly', 'canRenewToken = false\n', ''],
    ['a token is never renewed', "let canRenewToken = typeof token === 'function'", 'let canRenewToken = false'],
    ['an abort is noticed only after the attempt', "signal?.addEventListener('abort', onAbort)", ''],
    [
      'an abort does not end the backoff',
      'await withTimeout(delayMs, signal,',
      'await withTimeout(delayMs, undefined,',
    ],
    ["an attempt's timer is never cleared", 'clearTimeout(timer)', ''],
    ['an attempt has no timeout', 'resolve(undefined)\n', ''],
    [
      'a truncated response counts as a success',
      'text: await response.text() }',
      "text: await response.text().catch(() => '[]') }",
    ],
  ],
  'src/client/plant-json.ts': [['texts are changed', '"id"\\s*:\\s*(-', '\\\\?"id\\\\?"\\s*:\\s*(-']],
}
