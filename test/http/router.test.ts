import assert from 'node:assert/strict'
import { test } from 'node:test'
import { route } from '../../src/http/router.ts'

const PLANTS = { path: '/plants', id: '', query: '' }

const ROUTES: readonly (readonly [basePath: string, target: string, resource: object | undefined])[] = [
  ['', '/plants', PLANTS],
  ['', '/plants?', PLANTS],
  ['', '/plants?limit=1?2', { ...PLANTS, query: 'limit=1?2' }],
  ['', '/%70l%61nts', PLANTS],
  ['', '/plants/1', { path: '/plants/{id}', id: '1', query: '' }],
  ['', '/plants/a%20?x', { path: '/plants/{id}', id: 'a ', query: 'x' }],
  // An escaped slash isn't a separator, and no id contains one.
  ['', '/plants/%2F1', { path: '/plants/{id}', id: '%2F1', query: '' }],
  ['', '/plants%2F1', undefined],
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
  ['', 'HTTPS://host:8443/plants/1', { path: '/plants/{id}', id: '1', query: '' }],
  ['', 'http://host/plants?to=http://host/', { ...PLANTS, query: 'to=http://host/' }],
  ['', 'http://host//', undefined],
  ['', 'http://[::1]:80/plants', PLANTS],
  ['/api/v1', '/api/v1/plants', PLANTS],
  ['/api/v1', '/api/v%31/plants', PLANTS],
  ['/api/v1', 'http://host/api/v1/plants', PLANTS],
  ['/api/v1', '/api/v1/plants/1', { path: '/plants/{id}', id: '1', query: '' }],
  ['/api/v1', '/plants', undefined],
  ['/api/v1', '/api%2Fv1/plants', undefined],
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
    assert.equal(route('', target), undefined)
  })
}

for (const [basePath, target, resource] of ROUTES) {
  test(`"${target}" with the basePath "${basePath}" ${resource === undefined ? 'matches no route' : `matches ${JSON.stringify(resource)}`}`, () => {
    assert.deepEqual(route(basePath, target), resource)
  })
}
