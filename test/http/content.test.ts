import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkContent } from '../../src/http/content.ts'

/** Parameters after the media type. */
const ACCEPTED_SUFFIXES = [
  '',
  ';',
  ' ; ; charset=utf-8 ',
  ';charset="UTF-8"',
  ';charset="u\\tf-8"',
  ';profile="a;charset=latin1"',
]
const REJECTED_SUFFIXES = [
  ...[';charset=utf-8;charset=latin1', ';charset=utf-16', ';charset=x-utf-8', ';charset=utf-8-x', ';charset=""'],
  ...[';charset', ';charset=', '; charset = utf-8', ';charset="utf-8', ' charset=utf-8', ', text/plain', '+x'],
]

for (const type of ['APPLICATION/JSON', ...ACCEPTED_SUFFIXES.map((rest) => `application/json${rest}`)]) {
  test(`checkContent accepts Content-Type: ${type}`, () => checkContent(type, ''))
}

const OTHER_TYPES = ['text/json', 'text/plain      ;a="application/json;"', undefined]
for (const type of [...OTHER_TYPES, ...REJECTED_SUFFIXES.map((rest) => `application/json${rest}`)]) {
  test(`checkContent rejects Content-Type: ${type}`, () =>
    assert.throws(() => checkContent(type, ''), { error: 41500 }))
}

for (const codings of ['', ',identity', ',IDENTITY , identity', ',']) {
  test(`checkContent accepts the content codings "${codings}"`, () => checkContent('application/json', codings))
}

for (const codings of [',gzip', ',identity,br', ',identity gzip']) {
  test(`checkContent rejects the content codings "${codings}"`, () => {
    assert.throws(() => checkContent('application/json', codings), { error: 41501 })
  })
}
