import assert from 'node:assert/strict'
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { before, suite, test } from 'node:test'
import { packPackage } from '../support/packed-package.ts'
import { serveInProcess } from '../support/standalone-server.ts'

const ROOT = join(import.meta.dirname, '../..')

suite('the files of the web UI', () => {
  // The package contains a build, which the tests of the package need too.
  before(async () => {
    if (existsSync(join(ROOT, 'dist/web-ui/index.html'))) return
    const { folder } = await packPackage()
    cpSync(join(folder, 'node_modules/plant-store/dist'), join(ROOT, 'dist'), { recursive: true })
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

  test('are not served with PLANT_STORE_WEB_UI=0', async (t) => {
    const { url } = await serveInProcess(t, { PLANT_STORE_WEB_UI: '0' })
    assert.equal((await fetch(url)).status, 404)
  })
})
