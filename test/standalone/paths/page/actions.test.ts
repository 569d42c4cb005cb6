import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { suite, test } from 'node:test'
import { promisify } from 'node:util'
import { memoryStore } from '../../../../src/index.ts'
import { openAsAda } from '../../../support/page/browser.ts'
import { needsChromium } from '../../../support/page/chromium.ts'
import { TOKEN } from '../../../support/program/program.ts'

const run = promisify(execFile)

suite('the page', { skip: needsChromium }, () => {
  test('creates a plant, shows request and response, and lists it', async (t) => {
    const page = await openAsAda(t)
    await page.create('1', 'Monstera deliciosa', 'tropical')

    assert.equal(await page.text('#create .result'), 'Created “\u2068Monstera deliciosa\u2069”.')
    assert.equal(
      await page.text('#create + .exchange .request'),
      `curl -i '${page.url}/plants' \\\n  -H "Authorization: Bearer $TOKEN" \\\n  -H 'Content-Type: application/json' \\\n` +
        `  -d '{"id":1,"name":"Monstera deliciosa","tag":"tropical"}'`,
    )
    assert.match(await page.text('#create + .exchange .status'), /^200 OK · \d+ ms$/)
    assert.match(
      await page.text('#create + .exchange .response'),
      /^Content-Type: application\/json\n(?:X-Request-Id: \S+\n)?\n{"name":"Monstera deliciosa","tag":"tropical"}$/,
    )
    await page.waitFor('#plants', /Monstera/)
    assert.deepEqual(await page.plants(), [['Monstera deliciosa', 'tropical']])
  })

  test('shows the request while it is typed', async (t) => {
    const page = await openAsAda(t)
    await page.fill('#delete', 'Id', '42')
    assert.match(await page.text('#delete + .exchange .request'), /^curl -i -X DELETE 'http:\S+\/plants\/42' /)
    assert.equal(await page.text('#delete + .exchange .response'), 'Not sent yet.')
  })

  test('deletes a plant by its id, and lists those that are left', async (t) => {
    const store = memoryStore()
    for (const id of [1n, 2n]) void store.create('ada', { id, name: `Fern ${id}` })
    const page = await openAsAda(t, { store })
    await page.fill('#delete', 'Id', '1')
    await page.press('#delete', 'Delete')
    await page.waitFor('#delete .result', /./)

    assert.equal(await page.text('#delete .result'), 'Deleted.')
    assert.match(await page.text('#delete + .exchange .status'), /^204 No Content · \d+ ms$/)
    await page.waitFor('#list .result', /1 plant\./)
    assert.deepEqual(await page.plants(), [['Fern 2']])
  })

  for (const id of ['9223372036854775807', '-9223372036854775808', '9007199254740993']) {
    test(`${id} arrives intact, and leaves intact`, async (t) => {
      const page = await openAsAda(t)
      await page.create(id, 'Fern')
      const before = BigInt(id) - 1n
      const after = before < -(2n ** 63n) ? '' : `?after=${before}`
      assert.deepEqual(await page.kept(after), [{ name: 'Fern' }])
      assert.deepEqual(await page.kept(`?after=${id}`), [])

      await page.fill('#delete', 'Id', id)
      await page.press('#delete', 'Delete')
      await page.waitFor('#delete .result', /^Deleted/)
      assert.deepEqual(await page.kept(), [])
    })
  }

  suite('says an error in the words of the service, beside the field that it speaks of:', () => {
    const rows: readonly [name: string, form: string, button: string, fields: Record<string, string>, error: string][] =
      [
        [
          'an id that is taken',
          'create',
          'Create',
          { Id: '1', Name: 'Fern' },
          'new-id: You already have a plant with this id; it stays as it was.',
        ],
        [
          'a name that no store keeps',
          'create',
          'Create',
          { Id: '2', Name: 'Fern\0' },
          'new-name: name must be a string of well-formed Unicode without U+0000.',
        ],
        ['an id of no plant', 'delete', 'Delete', { Id: '42' }, 'delete-id: You have no plant with this id.'],
      ]
    for (const [name, form, button, fields, expected] of rows) {
      test(name, async (t) => {
        const store = memoryStore()
        void store.create('ada', { id: 1n, name: 'Fern' })
        const page = await openAsAda(t, { store })
        for (const [label, text] of Object.entries(fields)) await page.fill(`#${form}`, label, text)
        await page.press(`#${form}`, button)
        await page.waitFor(`#${form} .result`, /^40\d /)
        const errors = await page.evaluate<string[]>(
          `Array.from(document.querySelectorAll('[aria-invalid=true]'), ({ id }) =>
             id + ': ' + document.getElementById(id + '-error').innerText)`,
        )
        assert.deepEqual(errors, [expected])
      })
    }

    test('no field, of a body that is too large', async (t) => {
      const page = await openAsAda(t, { maxBodyBytes: 100 })
      await page.create('1', 'x'.repeat(100))
      assert.equal(await page.text('#create .result'), '413 Payload Too Large: The body is larger than 100 bytes.')
    })
  })

  test('an error goes when its field is written in', async (t) => {
    const page = await openAsAda(t)
    await page.fill('#delete', 'Id', '42')
    await page.press('#delete', 'Delete')
    await page.waitFor('#delete-id-error', /./)
    await page.fill('#delete', 'Id', '4')
    assert.equal(await page.text('#delete-id-error'), '')
    assert.equal(await page.evaluate(`document.querySelector('#delete-id').ariaInvalid`), 'false')
  })

  suite('keeps a name as it is, and shows it:', () => {
    const rows: readonly [name: string, text: string][] = [
      ['a script', '<script>document.title = "taken"</script><img src=x onerror="document.title = 1">'],
      ['right to left', 'نخلة التمر'],
      ['marks that turn the direction', 'Fern \u202enretsae\u202c \u2067x'],
      ['emoji of several code points', '🌵👩🏽‍🌾'],
      ['what a shell would take', `'; echo "$TOKEN" \\ \`id\` !! #'`],
      ['spaces', '  a  b  '],
    ]
    for (const [name, text] of rows) {
      test(name, async (t) => {
        const page = await openAsAda(t)
        await page.create('1', text)
        await page.waitFor('#list .result', /1 plant\./)
        assert.deepEqual(await page.plants(), [[text]])
        assert.deepEqual(await page.kept(), [{ name: text }])
        assert.equal(await page.page.title(), 'plant-store')
      })
    }

    test('60 kB, folded', async (t) => {
      const page = await openAsAda(t)
      const text = '🌱'.repeat(15_000)
      await page.create('1', text)
      await page.waitFor('#list .result', /1 plant\./)
      const shown = `${'🌱'.repeat(50)} … and 29,900 more characters`
      assert.equal(await page.text('#plants .name'), shown)
      await page.page.click('#plants summary')
      assert.equal(await page.text('#plants .name'), `${shown}\n${text}`)
      assert.deepEqual(await page.kept(), [{ name: text }])
    })
  })

  for (const [id, name] of [
    ['1', "Fern 'of' $HOME `id` \\ \" !!"],
    ['9223372036854775807', 'نخلة'],
  ] as const) {
    test(`the curl line to create ${name} does that in a shell`, async (t) => {
      const page = await openAsAda(t)
      await page.fill('#create', 'Id', id)
      await page.fill('#create', 'Name', name)
      const curl = await page.text('#create + .exchange .request')
      const { stdout } = await run('sh', ['-c', curl], { env: { ...process.env, TOKEN } })
      assert.match(stdout, /^HTTP\/1.1 200 OK\r\n/)
      assert.deepEqual(await page.kept(), [{ name }])
    })
  }

  test('copies the curl line', async (t) => {
    const page = await openAsAda(t)
    for (const name of ['clipboard-read', 'clipboard-write'] as const) {
      await page.page.browserContext().setPermission(page.url, { permission: { name }, state: 'granted' })
    }
    await page.press('#list + .exchange', 'Copy the request: List plants')
    await page.waitFor('#list .result', /copied\. Set TOKEN to your token in the shell first\.$/)
    assert.equal(
      await page.evaluate('navigator.clipboard.readText()'),
      `curl -i '${page.url}/plants?limit=10&include=id' \\\n  -H "Authorization: Bearer $TOKEN"`,
    )
  })

  test('selects the curl line if there is no clipboard', async (t) => {
    const page = await openAsAda(t)
    await page.evaluate(`Object.defineProperty(navigator, 'clipboard', { value: undefined })`)
    await page.press('#list + .exchange', 'Copy the request: List plants')
    await page.waitFor('#list .result', /selected: copy it with your keyboard\./)
    assert.match(await page.evaluate('getSelection().toString()'), /^curl -i 'http\S+' \\\n {2}-H "Auth.*TOKEN"$/)
  })
})
