import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { suite, test } from 'node:test'
import { promisify } from 'node:util'
import { memoryStore } from '../../../../src/index.ts'
import {
  createWebUiListener,
  skipWithoutChromium,
  openAsAda,
  serveListener,
  createStoreWithFerns,
} from '../../../support/page/web-ui-page.ts'
import { TOKEN } from '../../../support/program/program.ts'

const execFileAsync = promisify(execFile)

function createFernRows(first: number, last: number): string[][] {
  return Array.from({ length: last - first + 1 }, (_, i) => [`Fern ${first + i}`])
}

suite('the web UI', { skip: skipWithoutChromium }, () => {
  test('creates a plant, shows the request and the response, and lists the plant', async (t) => {
    const page = await openAsAda(t)
    assert.equal(await page.getText('#none'), 'No plants yet. Create the first one: an id and a name will do.')
    assert.equal(await page.getText('#list .result'), 'Page 1: 0 plants. The list ends here.')
    await page.createPlant('1', 'Monstera deliciosa', 'tropical')

    assert.equal(await page.getText('#create .result'), 'Created “\u2068Monstera deliciosa\u2069”.')
    assert.equal(
      await page.getText('#create + .exchange .request'),
      `curl -i '${page.url}/plants' \\\n  -H "Authorization: Bearer $TOKEN" \\\n  -H 'Content-Type: application/json' \\\n` +
        `  -d '{"id":1,"name":"Monstera deliciosa","tag":"tropical"}'`,
    )
    assert.match(await page.getText('#create + .exchange .status'), /^200 OK · \d+ ms$/)
    assert.match(
      await page.getText('#create + .exchange .response'),
      /^Content-Type: application\/json\n(?:X-Request-Id: \S+\n)?\n{"name":"Monstera deliciosa","tag":"tropical"}$/,
    )
    await page.waitForText('#plants', /Monstera/)
    assert.deepEqual(await page.getListedPlants(), [['Monstera deliciosa', 'tropical']])
  })

  test('shows the delete request while the id is typed, deletes the plant, and lists the remaining plants', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(2) })
    await page.fillField('#delete', 'Id', '1')
    assert.match(await page.getText('#delete + .exchange .request'), /^curl -i -X DELETE 'http:\S+\/plants\/1' /)
    assert.equal(await page.getText('#delete + .exchange .response'), 'Not sent yet.')
    await page.submit('delete')
    await page.waitForText('#delete .result', /^Deleted\.$/)
    assert.match(await page.getText('#delete + .exchange .status'), /^204 No Content · \d+ ms$/)
    await page.waitForText('#list .result', /1 plant\./)
    assert.deepEqual(await page.getListedPlants(), createFernRows(2, 2))
  })

  test('sends all digits of an id', async (t) => {
    const page = await openAsAda(t)
    for (const id of ['9223372036854775807', '-9223372036854775808', '9007199254740993']) {
      await page.createPlant(id, 'Fern')
      const before = BigInt(id) - 1n
      const after = before < -(2n ** 63n) ? '' : `?after=${before}`
      assert.deepEqual(await page.fetchPlants(after), [{ name: 'Fern' }])
      assert.deepEqual(await page.fetchPlants(`?after=${id}`), [])

      await page.fillAndSubmit('delete', { Id: id })
      await page.waitForText('#delete .result', /^Deleted/)
      assert.deepEqual(await page.fetchPlants(), [])
    }
  })

  test('shows the error message of the service next to the invalid field until the field is edited', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(1), maxBodyBytes: 100 })
    const rows = [
      ['create', 'Id', { Name: 'Fern', Id: '1' }, 'new-id: You already have a plant with this id. It was not changed.'],
      ['create', 'Name', { Id: '2', Name: 'Fern\0' }, 'new-name: name contains U+0000.'],
      ['delete', 'Id', { Id: '42' }, 'delete-id: You have no plant with this id.'],
    ] as const
    const errors = `Array.from(document.querySelectorAll('[aria-invalid=true]'), ({ id }) =>
      id + ': ' + document.getElementById(id + '-error').innerText)`
    for (const [form, wrong, fields, expected] of rows) {
      for (const [label, text] of Object.entries(fields)) await page.fillField(`#${form}`, label, text)
      await page.clickButton(`#${form}`, form === 'create' ? 'Create' : 'Delete')
      await page.waitForText(`#${form} .result`, /^40\d /)
      assert.deepEqual(await page.evaluate(errors), [expected])
      await page.fillField(`#${form}`, wrong, '4')
      assert.deepEqual(await page.evaluate(errors), [])
    }
    await page.createPlant('1', 'x'.repeat(100))
    assert.equal(await page.getText('#create .result'), '413 Payload Too Large: The body is larger than 100 bytes.')
  })

  test('sends and shows names unchanged', async (t) => {
    const names = [
      '<script>document.title = "taken"</script><img src=x onerror="document.title = 1">',
      'نخلة التمر',
      '🌵👩🏽‍🌾',
      `'; echo "$TOKEN" \\ \`id\` !! #'`,
      '  a  b  ',
      'Fern \u202enretsae\u202c \u2067x',
    ]
    const page = await openAsAda(t)
    for (const [id, name] of names.entries()) await page.createPlant(String(id), name)
    // Bidirectional control characters are escaped, because they would reverse the surrounding text.
    for (const part of ['request', 'response']) {
      const text = await page.getText(`#create + .exchange .${part}`)
      assert.match(text, /"name":"Fern \\u202enretsae\\u202c \\u2067x"/)
    }
    assert.doesNotMatch(await page.getText('#create .result'), /[\u202e\u202c\u2067]/)
    await page.waitForText('#list .result', /6 plants\./)
    const shown = await page.getListedPlants()
    assert.deepEqual(shown.flat(), names)
    assert.deepEqual(
      await page.fetchPlants(),
      names.map((name) => ({ name })),
    )
    assert.equal(await page.page.title(), 'plant-store')
  })

  test('collapses a name of 60 kB, and keeps it expanded when the list is reloaded', async (t) => {
    const page = await openAsAda(t)
    const name = '🌱'.repeat(15_000)
    await page.createPlant('1', name)
    await page.waitForText('#list .result', /1 plant\./)
    const shown = `${'🌱'.repeat(50)} … and 29,900 more characters`
    assert.equal(await page.getText('#plants .name'), shown)
    await page.page.click('#plants summary')
    assert.equal(await page.getText('#plants .name'), `${shown}\n${name}`)
    assert.deepEqual(await page.fetchPlants(), [{ name }])
    await page.createPlant('2', 'Moss')
    await page.waitForText('#plants', /Moss/)
    assert.equal(await page.evaluate(`document.querySelector('#plants details').open`), true)
  })

  test('shows a curl command that creates the same plant in a shell', async (t) => {
    const page = await openAsAda(t)
    const names = ["Fern 'of' $HOME `id` \\ \" !!", 'نخلة']
    for (const [index, id] of ['1', '9223372036854775807'].entries()) {
      await page.fillField('#create', 'Id', id)
      await page.fillField('#create', 'Name', names[index]!)
      const curl = await page.getText('#create + .exchange .request')
      const { stdout } = await execFileAsync('sh', ['-c', curl], { env: { ...process.env, TOKEN } })
      assert.match(stdout, /^HTTP\/1.1 200 OK\r\n/)
    }
    assert.deepEqual(await page.fetchPlants(), [{ name: names[0] }, { name: names[1] }])
    assert.deepEqual(await page.fetchPlants(`?after=${2n ** 63n - 2n}`), [{ name: names[1] }])
  })

  test('copies the curl command, or selects it if there is no clipboard', async (t) => {
    const page = await openAsAda(t)
    for (const name of ['clipboard-read', 'clipboard-write'] as const) {
      await page.page.browserContext().setPermission(page.url, { permission: { name }, state: 'granted' })
    }
    await page.clickButton('#list + .exchange', 'Copy the request: List plants')
    await page.waitForText('#list .result', /copied\. Set TOKEN to your token in the shell first\.$/)
    const curl = `curl -i '${page.url}/plants?limit=10&include=id' \\\n  -H "Authorization: Bearer $TOKEN"`
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), curl)
    await page.evaluate(`Object.defineProperty(navigator, 'clipboard', { value: undefined })`)
    await page.clickButton('#list + .exchange', 'Copy the request: List plants')
    await page.waitForText('#list .result', /selected: copy it with the keyboard\./)
    assert.equal(await page.evaluate('getSelection().toString()'), curl)
  })
})

suite('the list in the web UI', { skip: skipWithoutChromium }, () => {
  test('follows Link headers to the next page, goes back, and stays on its page after a delete', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(25) })
    assert.deepEqual(await page.getListedPlants(), createFernRows(1, 10))
    assert.match(
      await page.getText('#list + .exchange .response'),
      /^Link: <plants\?limit=10&after=10&include=id>; rel="next"$/m,
    )

    await page.clickButton('#list', 'Next')
    await page.waitForText('#list .result', /^Page 2: 10 plants\. More follow\.$/)
    assert.deepEqual(await page.getListedPlants(), createFernRows(11, 20))
    assert.match(
      await page.getText('#list + .exchange .request'),
      /^curl -i '\S+\/plants\?limit=10&after=10&include=id' /,
    )
    await page.clickButton('#list', 'Next')
    await page.waitForText('#list .result', /^Page 3: 5 plants\. The list ends here\.$/)
    assert.deepEqual(await page.getListedPlants(), createFernRows(21, 25))
    // The Next button keeps the focus when there is no next page.
    assert.equal(await page.evaluate('document.activeElement.id + document.activeElement.ariaDisabled'), 'nexttrue')
    await page.page.keyboard.press('Enter')
    assert.deepEqual(await page.getListedPlants(), createFernRows(21, 25))

    await page.clickButton('#list', 'Previous')
    await page.waitForText('#list .result', /^Page 2/)
    assert.deepEqual(await page.getListedPlants(), createFernRows(11, 20))
    await page.fillAndSubmit('delete', { Id: '11' })
    await page.waitForText('#plants', /^12Fern 12/)
    await page.waitForText('#list .result', /^Page 2: 10 plants\. More follow\.$/)
  })

  test('deletes a row after a confirmation, moves the focus to the next row, and announces the deletion', async (t) => {
    const store = memoryStore()
    const ids = [9007199254740992n, 9007199254740993n, 9223372036854775807n]
    for (const id of ids) void store.create('ada', { id, name: `{"id":${id}` })
    const page = await openAsAda(t, { store })
    const plant = 'plant 9007199254740993, \u2068{"id":9007199254740993\u2069'
    const doubted = `document.querySelectorAll('.confirm:not([hidden])').length`
    for (const [button, result, count] of [
      ['Delete', /^Delete plant \u20689007199254740993\u2069\? This cannot be undone\./, 1],
      ['Keep', /^Page 1: 3 plants\./, 0],
      ['Delete', /^Delete plant \u20689007199254740993\u2069\? This cannot be undone\./, 1],
    ] as const) {
      await page.page.locator(`#list li:nth-child(2) ::-p-text(${button})`).click()
      await page.waitForText('#list .result', result)
      assert.equal(await page.evaluate(doubted), count)
    }
    assert.equal(await page.evaluate('document.activeElement.ariaLabel'), `Keep ${plant}`)
    await page.page.click('li:nth-child(2) .confirm')
    await page.waitForText('#list .result', /^Deleted\. Page 1: 2 plants\./)
    assert.deepEqual(await page.getListedPlants('id', 'name'), [
      ['9007199254740992', '{"id":9007199254740992'],
      ['9223372036854775807', '{"id":9223372036854775807'],
    ])
    assert.match(await page.evaluate('document.activeElement.ariaLabel'), /^Delete plant 9223372036854775807, /)
    assert.match(await page.getText('#delete + .exchange .request'), /^curl -i -X DELETE 'http:\S+\/9007199254740993' /)
    assert.deepEqual(page.consoleMessages, [])
  })

  test('shows the chosen number of plants after an id, and renders only these of 100,000 plants', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(100_000) })
    for (const [limit, after, result, first, last] of [
      ['25', '100', /^Page 1: 25 plants\. More follow\.$/, 101, 125],
      ['100', '100', /^Page 1: 100 plants\. More follow\.$/, 101, 200],
      ['100', '99990', /^Page 1: 10 plants\. The list ends here\.$/, 99_991, 100_000],
    ] as const) {
      await page.page.select('#list-limit', limit)
      await page.fillField('#list', 'After id (optional)', after)
      await page.submit('list')
      await page.waitForText('#list .result', result)
      assert.deepEqual(await page.getListedPlants(), createFernRows(first, last))
      assert.ok((await page.evaluate<number>(`document.querySelectorAll('*').length`)) < 700)
    }
  })

  test('works behind a proxy with a path prefix, and with a lower maxLimit', async (t) => {
    const listener = createWebUiListener({ store: createStoreWithFerns(6), maxLimit: 5 })
    const url = await serveListener(t, (request, response) => {
      request.url = request.url!.replace(/^\/garden/, '')
      listener(request, response)
    })
    const page = await openAsAda(t, `${url}/garden`)
    assert.deepEqual(await page.getListedPlants(), createFernRows(1, 5))
    await page.clickButton('#list', 'Next')
    await page.waitForText('#list .result', /^Page 2: 1 plant/)
    await page.createPlant('12', 'Fern 12')
    await page.waitForText('#list .result', /^Page 2: 2 plants/)
    assert.match(await page.getText('#create + .exchange .request'), /\/garden\/plants' /)
  })
})
