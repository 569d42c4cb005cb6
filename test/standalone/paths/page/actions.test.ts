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
  test('adds a plant and lists it', async (t) => {
    const page = await openAsAda(t)
    assert.equal(await page.getText('#empty'), 'No plants yet. Add the first one above.')
    await page.createPlant('7', 'Monstera deliciosa', 'tropical')
    assert.equal(await page.getText('#message'), 'Added “\u2068Monstera deliciosa\u2069”.')
    assert.deepEqual(await page.getListedPlants('id', 'name', 'tag'), [['7', 'Monstera deliciosa', 'tropical']])
    assert.equal(await page.getText('#range'), 'Id \u20687\u2069. End of the list.')
    assert.deepEqual(await page.fetchPlants(), [{ name: 'Monstera deliciosa', tag: 'tropical' }])
    assert.deepEqual(
      [await page.getFocused(), await page.getValue('new-name'), await page.getValue('new-tag')],
      ['new-name', '', ''],
    )
  })

  test('sends all digits of an id', async (t) => {
    const page = await openAsAda(t)
    for (const id of ['9223372036854775807', '-9223372036854775808', '9007199254740993']) {
      await page.createPlant(id, 'Fern')
      const before = BigInt(id) - 1n
      const after = before < -(2n ** 63n) ? '' : `?after=${before}`
      assert.deepEqual(await page.fetchPlants(after), [{ name: 'Fern' }])
      assert.deepEqual(await page.fetchPlants(`?after=${id}`), [])

      await page.deletePlant(id)
      assert.deepEqual(await page.fetchPlants(), [])
    }
  })

  test('asks for confirmation before deleting a plant, and moves the focus to Cancel, back, and then to the next row', async (t) => {
    const store = memoryStore()
    const ids = [9007199254740992n, 9007199254740993n, 9223372036854775807n]
    for (const id of ids) void store.create('ada', { id, name: `{"id":${id}` })
    const page = await openAsAda(t, { store })
    const plant = 'plant 9007199254740993, \u2068{"id":9007199254740993\u2069'
    const questions = `Array.from(document.querySelectorAll('.question:not([hidden])'), ({ ariaLabel }) => ariaLabel)`
    for (const answer of ['Cancel', 'Escape', 'Delete'] as const) {
      await page.clickInRow('9007199254740993', 'Delete')
      assert.equal(await page.getFocused(), 'Cancel')
      assert.deepEqual(await page.evaluate(questions), [`Delete ${plant}? This can't be undone.`])
      assert.equal(await page.getText('.question:not([hidden]) b'), "Delete? This can't be undone.")
      assert.equal(await page.getText('#message'), '')
      if (answer === 'Cancel') await page.clickInRow('9007199254740993', 'Cancel')
      else if (answer === 'Escape') await page.page.keyboard.press('Escape')
      else await page.clickInRow('9007199254740993', 'Confirm')
      assert.deepEqual(await page.evaluate(questions), [])
      if (answer !== 'Delete') {
        assert.equal(await page.evaluate('document.activeElement.ariaLabel'), `Delete ${plant}`)
        assert.equal(await page.getText('#message'), '')
      }
    }
    await page.waitForText('#message', /^Deleted “\u2068{"id":9007199254740993\u2069”\.$/)
    assert.deepEqual(await page.getListedPlants('id', 'name'), [
      ['9007199254740992', '{"id":9007199254740992'],
      ['9223372036854775807', '{"id":9223372036854775807'],
    ])
    assert.match(await page.evaluate('document.activeElement.ariaLabel'), /^Delete plant 9223372036854775807, /)
    assert.equal(page.countRequests('DELETE /plants/9007199254740993'), 1)
    assert.deepEqual(page.consoleMessages, [])
  })

  test('shows each error next to its field until the field is edited', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(1), maxBodyBytes: 100 })
    const errors = `Array.from(document.querySelectorAll('[aria-invalid=true]'), ({ id }) =>
      id + ': ' + document.getElementById(id + '-error').innerText)`
    for (const [id, name, tag, invalidField, expected] of [
      ['1', 'Fern', '', 'Id', ['new-id: Plant \u20681\u2069 already exists.']],
      ['2', 'Fern\0', '', 'Name', ['new-name: Name contains U+0000.']],
      ['2', 'Fern', 'wet\0', 'Tag (optional)', ['new-tag: Tag contains U+0000.']],
      ['3', '', '', 'Name', ['new-name: Name is required.']],
    ] as const) {
      await page.submitPlant(id, name, tag)
      await page.page.waitForSelector('[aria-invalid=true]')
      assert.deepEqual(await page.evaluate(errors), expected)
      await page.fillField('#create', invalidField, '4')
      assert.deepEqual(await page.evaluate(errors), [])
    }
    await page.submitPlant('2', 'x'.repeat(100))
    await page.waitForText('#message', /^The body is larger than 100 bytes\.$/)
  })

  test('reports that someone else has already deleted a plant', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(2) })
    await fetch(`${page.url}/plants/1`, { method: 'DELETE', headers: { Authorization: `Bearer ${TOKEN}` } })
    await page.clickInRow('1', 'Delete')
    await page.clickInRow('1', 'Confirm')
    await page.waitForText('#message', /^Plant \u20681\u2069 doesn't exist anymore\.$/)
    await page.waitForList()
    assert.deepEqual(await page.getListedPlants(), createFernRows(2, 2))
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
    const { curl, response } = await page.openLogEntry(2)
    for (const text of [curl, response]) assert.match(text, /"name":"Fern \\u202enretsae\\u202c \\u2067x"/)
    assert.doesNotMatch(await page.getText('#message'), /[\u202e\u202c\u2067]/)
    const shown = await page.getListedPlants()
    assert.deepEqual(shown.flat(), names)
    assert.deepEqual(
      await page.fetchPlants(),
      names.map((name) => ({ name })),
    )
    assert.equal(await page.page.title(), 'plant-store')
  })

  for (const length of [30_000, 100_000]) {
    test(`shows a name of ${length} characters collapsed until the user expands it`, async (t) => {
      const page = await openAsAda(t, { maxBodyBytes: 1_000_000 })
      const name = '🌱'.repeat(length / 2)
      await page.createPlant('1', name)
      const shown = `${'🌱'.repeat(50)} … and ${(length - 100).toLocaleString('en')} more characters`
      assert.equal(await page.getText('td.name'), shown)
      await page.page.click('td.name summary')
      assert.equal(await page.getText('td.name'), `${shown}\n${name}`)
      assert.deepEqual(await page.fetchPlants(), [{ name }])
      await page.createPlant('2', 'Moss')
      assert.equal(await page.evaluate(`document.querySelector('td.name details').open`), true)
    })
  }
})

suite('the request log of the web UI', { skip: skipWithoutChromium }, () => {
  test('shows the method, path, status and time of each request, and its curl command and response', async (t) => {
    const page = await openAsAda(t)
    await page.createPlant('1', 'Fern', 'wet')
    await page.deletePlant('1')
    const authorization = '-H "Authorization: Bearer $TOKEN"'
    const entries = [
      [
        2,
        /^DELETE \/plants\/1 204 No Content \d+ ms$/,
        `curl -i -X DELETE '${page.url}/plants/1' \\\n  ${authorization}`,
        /^(X-Request-Id: \S+)?$/,
      ],
      [
        4,
        /^POST \/plants 200 OK \d+ ms$/,
        `curl -i '${page.url}/plants' \\\n  ${authorization} \\\n  -H 'Content-Type: application/json' \\\n` +
          `  -d '{"id":1,"name":"Fern","tag":"wet"}'`,
        /^Content-Type: application\/json\n(?:X-Request-Id: \S+\n)?\n{"name":"Fern","tag":"wet"}$/,
      ],
      [
        5,
        /^GET \/plants\?limit=10&include=id 200 OK \d+ ms$/,
        `curl -i '${page.url}/plants?limit=10&include=id' \\\n  ${authorization}`,
        /^Content-Type: application\/json\n(?:X-Request-Id: \S+\n)?\n\[\]$/,
      ],
    ] as const
    for (const [index, summary, curl, response] of entries) {
      const entry = await page.openLogEntry(index)
      assert.match(entry.summary, summary)
      assert.equal(entry.curl, curl)
      assert.match(entry.response, response)
    }
  })

  test('shows a curl command that creates the same plant when it is run in a shell', async (t) => {
    const page = await openAsAda(t)
    const names = ["Fern 'of' $HOME `id` \\ \" !!", 'نخلة']
    for (const [index, id] of ['1', '9223372036854775807'].entries()) {
      await page.createPlant(id, names[index]!)
      const { curl } = await page.openLogEntry(2)
      await page.deletePlant(id)
      assert.deepEqual(await page.fetchPlants(), [])
      const { stdout } = await execFileAsync('sh', ['-c', curl], { env: { ...process.env, TOKEN } })
      assert.match(stdout, /^HTTP\/1.1 200 OK\r\n/)
      assert.deepEqual(await page.fetchPlants(`?include=id&after=${BigInt(id) - 1n}`), [
        { id: Number(id), name: names[index] },
      ])
      await page.goToId(id)
      await page.waitForText('tbody', /Delete/)
      await page.deletePlant(id)
    }
  })

  test('copies a curl command, or selects it if there is no clipboard', async (t) => {
    const page = await openAsAda(t)
    for (const name of ['clipboard-read', 'clipboard-write'] as const) {
      await page.page.browserContext().setPermission(page.url, { permission: { name }, state: 'granted' })
    }
    const { curl } = await page.openLogEntry()
    await page.clickButton('#log', 'Copy')
    await page.waitForText('#log-message', /^Copied\. Set TOKEN to your token in the shell first\.$/)
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), curl)
    await page.evaluate(`Object.defineProperty(navigator, 'clipboard', { value: undefined })`)
    await page.clickButton('#log', 'Copy')
    await page.waitForText('#log-message', /^Selected: copy it with the keyboard\./)
    assert.equal(await page.evaluate('getSelection().toString()'), curl)
  })

  test('shows the last 20 requests, and keeps the focus and the open entry when requests are added', async (t) => {
    const page = await openAsAda(t)
    await page.createPlant('1', 'Fern')
    await page.openLogEntry(2)
    await page.page.focus('#log li details[open] summary')
    const focus = `(() => {
      const { innerText, parentElement } = document.activeElement.closest('li')?.querySelector('summary') ?? {}
      return [innerText?.slice(0, 4), parentElement?.open]
    })()`
    const open = `document.querySelector('#log li details[open]')`
    await page.evaluate(`globalThis.opened = ${open}`)
    for (let i = 0; i < 15; i++) {
      const response = page.page.waitForResponse((response) => response.url().includes('/plants?'))
      await page.evaluate(`document.querySelector('#go-to').requestSubmit()`)
      await response
      await page.waitForList()
    }
    assert.deepEqual(await page.evaluate(focus), ['POST', true])
    assert.equal(await page.evaluate(`opened === ${open}`), true)
    for (let i = 0; i < 6; i++) {
      const response = page.page.waitForResponse((response) => response.url().includes('/plants?'))
      await page.evaluate(`document.querySelector('#go-to').requestSubmit()`)
      await response
      await page.waitForList()
    }
    assert.equal(await page.evaluate(`document.querySelectorAll('#log li').length`), 20)
  })
})

suite('the list in the web UI', { skip: skipWithoutChromium }, () => {
  test('follows Link headers to the next page, goes back, and stays on its page after a delete', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(25) })
    assert.deepEqual(await page.getListedPlants(), createFernRows(1, 10))
    assert.equal(await page.getText('#range'), 'Ids \u20681\u2069 to \u206810\u2069. More follow.')

    await page.clickButton('#plants', 'Next')
    await page.waitForText('#range', /^Ids \u206811\u2069 to \u206820\u2069\. More follow\.$/)
    assert.deepEqual(await page.getListedPlants(), createFernRows(11, 20))
    assert.equal(page.requests.at(-1), 'GET /plants?limit=10&after=10&include=id')
    await page.clickButton('#plants', 'Next')
    await page.waitForText('#range', /^Ids \u206821\u2069 to \u206825\u2069\. End of the list\.$/)
    assert.deepEqual(await page.getListedPlants(), createFernRows(21, 25))
    // The Next button keeps the focus when there is no next page.
    assert.equal(await page.evaluate('document.activeElement.id + document.activeElement.ariaDisabled'), 'nexttrue')
    await page.page.keyboard.press('Enter')
    assert.deepEqual(await page.getListedPlants(), createFernRows(21, 25))

    await page.clickButton('#plants', 'Previous')
    await page.waitForText('#range', /20/)
    assert.deepEqual(await page.getListedPlants(), createFernRows(11, 20))
    await page.deletePlant('11')
    assert.deepEqual(await page.getListedPlants(), createFernRows(12, 21))
  })

  test('goes to an id, and back to the start of the list', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(25) })
    for (const [id, message, range, first, last] of [
      ['7', '', /^Ids \u20687\u2069 to \u206816\u2069\. More follow\.$/, 7, 16],
      ['-5', "Plant \u2068-5\u2069 doesn't exist.", /^Ids \u20681\u2069 to/, 1, 10],
      ['25', '', /^Id \u206825\u2069\. End of the list\.$/, 25, 25],
      ['9223372036854775807', "Plant \u20689223372036854775807\u2069 doesn't exist.", /^$/, 1, 0],
      ['-9223372036854775808', "Plant \u2068-9223372036854775808\u2069 doesn't exist.", /^Ids \u20681\u2069/, 1, 10],
      ['', '', /^Ids \u20681\u2069/, 1, 10],
    ] as const) {
      await page.goToId(id)
      await page.waitForList()
      await page.waitForText('#range', range)
      assert.equal(await page.getText('#message'), message)
      assert.deepEqual(await page.getListedPlants(), createFernRows(first, last))
      if (last === 0)
        assert.equal(await page.getText('#empty'), 'No plants with an id above \u20689223372036854775806\u2069.')
      if (!['', '-9223372036854775808'].includes(id)) {
        await page.clickButton('#plants', 'Previous')
        await page.waitForText('#range', /^Ids \u20681\u2069 to \u206810\u2069/)
      }
    }
  })

  test('renders only one page of the chosen size, even if there are 100,000 plants', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(100_000) })
    for (const [size, id, first, last] of [
      ['25', '101', 101, 125],
      ['100', '101', 101, 200],
      ['100', '99991', 99_991, 100_000],
    ] as const) {
      await page.page.select('#page-size', size)
      await page.goToId(id)
      await page.waitForText('#range', new RegExp(`${first}\u2069 to \u2068${last}\u2069`))
      assert.deepEqual(await page.getListedPlants(), createFernRows(first, last))
      assert.ok((await page.evaluate<number>(`document.querySelectorAll('*').length`)) < 2500)
    }
  })

  test('suggests the next id while the end of the list is in view, unless another id has been typed', async (t) => {
    const page = await openAsAda(t, { store: createStoreWithFerns(9) })
    assert.equal(await page.getValue('new-id'), '10')
    await page.fillField('#create', 'Name', 'Moss')
    await page.page.keyboard.press('Enter')
    await page.waitForText('#message', /^Added/)
    assert.equal(await page.getValue('new-id'), '11')

    // If a new plant doesn't fit on the page, the next page is shown.
    await page.fillField('#create', 'Name', 'Ivy')
    await page.page.keyboard.press('Enter')
    await page.waitForText('#range', /^Id \u206811\u2069\. End of the list\.$/)
    assert.equal(await page.getValue('new-id'), '12')

    await page.clickButton('#plants', 'Previous')
    await page.waitForText('#range', /More follow/)
    assert.equal(await page.getValue('new-id'), '')
    await page.fillField('#create', 'Id', '5')
    await page.clickButton('#plants', 'Next')
    await page.waitForText('#range', /End/)
    assert.equal(await page.getValue('new-id'), '5')
    await page.createPlant('9223372036854775807', 'Last')
    assert.equal(await page.getValue('new-id'), '')
  })

  test('works behind a proxy with a path prefix, and with a lower maxLimit', async (t) => {
    const listener = createWebUiListener({ store: createStoreWithFerns(6), maxLimit: 5 })
    const url = await serveListener(t, (request, response) => {
      request.url = request.url!.replace(/^\/garden/, '')
      listener(request, response)
    })
    const page = await openAsAda(t, `${url}/garden`)
    assert.deepEqual(await page.getListedPlants(), createFernRows(1, 5))
    await page.clickButton('#plants', 'Next')
    await page.waitForText('#range', /^Id \u20686\u2069/)
    await page.createPlant('12', 'Fern 12')
    assert.deepEqual(await page.getListedPlants('id'), [['6'], ['12']])
    assert.match((await page.openLogEntry(2)).curl, /\/garden\/plants' /)
  })
})
