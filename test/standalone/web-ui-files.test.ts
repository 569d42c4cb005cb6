import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { before, suite, test } from 'node:test'
import { serveInProcess } from '../support/standalone-server.ts'
import { VERSION } from '../../src/version.ts'

const ROOT = join(import.meta.dirname, '../..')

suite('the files of the web UI', () => {
  before(() => {
    if (existsSync(join(ROOT, 'dist/web-ui/index.html'))) return
    execFileSync(process.execPath, [join(ROOT, 'src/build/build.js')], { stdio: 'pipe' })
  })

  test('are all served, and load nothing from other origins', async (t) => {
    const { url } = await serveInProcess(t, { PLANT_STORE_WEB_UI: '1' })
    const types = { '/': 'text/html', '.css': 'text/css', '.js': 'text/javascript' }
    const pending = ['/']
    const seen = new Set<string>()
    for (const path of pending) {
      if (seen.has(path)) continue
      seen.add(path)
      const response = await fetch(url + path)
      const text = await response.text()
      assert.equal(response.status, 200, path)
      const type = types[(/\.\w+$/.exec(path)?.[0] ?? '/') as keyof typeof types]
      assert.equal(response.headers.get('content-type'), `${type}; charset=utf-8`)
      assert.equal(response.headers.get('cache-control'), 'no-cache')
      assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
      const policy = response.headers.get('content-security-policy')!.split('; ')
      assert.deepEqual(policy.slice(0, 3), ["default-src 'none'", "script-src 'self'", "style-src 'self'"])
      assert.doesNotMatch(text, /(?:src|href)="(?:https?:)?\/\//)
      const references = text.matchAll(/(?:src|href)="([^":#]+\.(?:js|css))"|\b(?:from|import) ?['"](\.[^'"]+)/g)
      for (const [, reference, module] of references) {
        const target = new URL((reference ?? module)!, url + path)
        pending.push(target.pathname)
      }
    }
    assert.ok(seen.has('/client/plant-client.js'), [...seen].join(' '))
  })

  test('contain the version and the kind of store', async (t) => {
    const { url } = await serveInProcess(t, { PLANT_STORE_WEB_UI: '1' })
    const html = await (await fetch(url)).text()
    assert.match(html, new RegExp(`${VERSION}.*memory`))
    assert.doesNotMatch(html, /\{\{/)
  })

  test('are not served with PLANT_STORE_WEB_UI=0', async (t) => {
    const { url } = await serveInProcess(t, { PLANT_STORE_WEB_UI: '0' })
    assert.equal((await fetch(url)).status, 404)
  })
})
