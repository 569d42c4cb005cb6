import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodePercent } from '../../src/http/percent-encoding.ts'
import { createRouter } from '../../src/http/router.ts'

const PLANTS = { path: '/plants', id: '', query: '' }

const ROOT = { path: '/', id: '', query: '' }

const ROUTES: readonly (readonly [basePath: string, target: string, resource: object | undefined])[] = [
  ['', '/plants', PLANTS],
  ['', '/plants?', PLANTS],
  ['', '/plants?limit=1?2', { ...PLANTS, query: 'limit=1?2' }],
  ['', '/%70l%61nts', PLANTS],
  ['', '/plants/1', { path: '/plants/{id}', id: '1', query: '' }],
  ['', '/plants/%2Fa%20?x', { path: '/plants/{id}', id: '/a ', query: 'x' }],
  ['', '/plants/%', { path: '/plants/{id}', id: undefined, query: '' }],
  ['', '/plants/%ff', { path: '/plants/{id}', id: undefined, query: '' }],
  ['', '/%zz', undefined],
  ['', '/plants/{id}', { path: '/plants/{id}', id: '{id}', query: '' }],
  ['', '/plants/', undefined],
  ['', '/plants/1/', undefined],
  ['', '/plants/1/2', undefined],
  ['', '/plants#1', undefined],
  ['', 'plants', undefined],
  ['', '*', undefined],
  ['', '', undefined],
  ['', 'http://host/plants', PLANTS],
  ['', 'HTTPS://user@host:8443/plants/1', { path: '/plants/{id}', id: '1', query: '' }],
  ['', 'http://host/plants?to=http://host/', { ...PLANTS, query: 'to=http://host/' }],
  ['', '/', ROOT],
  ['', 'http://host', ROOT],
  ['', 'http://host/', ROOT],
  ['', 'http://host?x=/plants', { ...ROOT, query: 'x=/plants' }],
  ['', 'http://host//', undefined],
  ['', 'http://[::1]:80/plants', PLANTS],
  ['', 'http://plants', ROOT],
  ['/api/v1', '/api/v1/plants', PLANTS],
  ['/api/v1', '/api/v%31/plants', PLANTS],
  ['/api/v1', 'http://host/api/v1/plants', PLANTS],
  ['/api/v1', '/api/v1/plants/1', { path: '/plants/{id}', id: '1', query: '' }],
  ['/api/v1', '/plants', undefined],
  ['/api/v1', '/api%2Fv1/plants', undefined],
  ['/a%2Fb', '/a%2fb/plants', PLANTS],
  ['/a%2Fb', '/a/b/plants', undefined],
  ['/a%3Fb', '/a%3fb/plants', PLANTS],
  ['/a%3Fb', '/a?b/plants', undefined],
  ['/a%23b', '/a%23b/plants', PLANTS],
  ['/%61:b', '/a:b/plants', PLANTS],
  ['/{id}', '/1/plants', undefined],
]

/** Middleware that guards paths by comparing them would let these targets pass. */
const BYPASSES = [
  'http:///plants',
  'http://:80/plants',
  'http://user@/plants',
  'http://a b/plants',
  'http://host#/plants',
  'http:/plants',
  'http:plants',
  'foo:///plants',
  'foo://host/plants',
  'ws://host/plants',
  'xhttp://host/plants',
  ' http://host/plants',
]

for (const target of BYPASSES) {
  test(`"${target}" is not a valid absolute-form target and matches no route (authorization bypass)`, () => {
    assert.equal(createRouter('', ['/', '/plants', '/plants/{id}'])(target), undefined)
  })
}

for (const [basePath, target, resource] of ROUTES) {
  test(`"${target}" with the basePath "${basePath}" ${resource === undefined ? 'matches no route' : `matches ${JSON.stringify(resource)}`}`, () => {
    assert.deepEqual(createRouter(basePath, ['/', '/plants', '/plants/{id}'])(target), resource)
  })
}

/** The result of decodeURIComponent, or undefined if it throws. */
function decodeOrUndefined(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

const ASCII = ['', 'plants', '%', '%%', '%2', '%zz', '%70lants', '%2F', '%252F', '%00', 'a%20b%20c', '100%', '%u0041']
const NON_ASCII = ['é', '%C3%A9', '%c3%a9', '%C3', '%C3%', '%C3x%A9', '%A9', '%C0%AF', '%ED%A0%80', '%F0%9F%8C%B1']

for (const text of [...ASCII, ...NON_ASCII, '%F4%90%80%80', '%FF']) {
  test(`decodePercent decodes "${text}" like decodeURIComponent`, () => {
    assert.equal(decodePercent(text), decodeOrUndefined(text))
  })
}
