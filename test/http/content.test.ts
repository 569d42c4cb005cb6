import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkContent } from '../../src/http/content.ts'

const TYPES: readonly (readonly [contentType: string | undefined, isTaken: boolean])[] = [
  ['application/json', true],
  ['APPLICATION/JSON', true],
  ['application/json;', true],
  ['application/json ; ; charset=utf-8 ', true],
  ['application/json;charset="UTF-8"', true],
  ['application/json;charset="u\\tf-8"', true],
  ['application/json;profile="a;charset=latin1"', true],
  ['application/json;charset=utf-8;charset=latin1', false],
  ['application/json;charset=utf-16', false],
  ['application/json;charset=""', false],
  ['application/json;charset', false],
  ['application/json;charset=', false],
  ['application/json; charset = utf-8', false],
  ['application/json;charset="utf-8', false],
  ['application/json charset=utf-8', false],
  ['application/json, text/plain', false],
  ['application/json+x', false],
  ['text/json', false],
  ['text/plain      ;a="application/json;"', false],
  ['application/json;charset=x-utf-8', false],
  ['application/json;charset=utf-8-x', false],
  [undefined, false],
]

for (const [contentType, isTaken] of TYPES) {
  test(`${isTaken ? 'takes' : 'refuses'} Content-Type: ${contentType}`, () => {
    if (isTaken) checkContent(contentType, '')
    else assert.throws(() => checkContent(contentType, ''), { error: 41500 })
  })
}

const CODINGS: readonly (readonly [contentEncoding: string, isTaken: boolean])[] = [
  ['', true],
  [',identity', true],
  [',IDENTITY , identity', true],
  [',', true],
  [',gzip', false],
  [',identity,br', false],
  [',identity gzip', false],
]

for (const [contentEncoding, isTaken] of CODINGS) {
  test(`${isTaken ? 'takes' : 'refuses'} the codings "${contentEncoding}"`, () => {
    if (isTaken) checkContent('application/json', contentEncoding)
    else assert.throws(() => checkContent('application/json', contentEncoding), { error: 41501 })
  })
}
