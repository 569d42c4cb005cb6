import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { ServerResponse } from 'node:http'
import { suite, test } from 'node:test'
import { promisify } from 'node:util'
import { memoryStore } from '../../src/index.ts'
import { openAsAda, openPage, skipWithoutBrowser, TOKEN } from '../support/web-ui-page.ts'
import { createStoreWithPlants } from '../support/plant-list.ts'

const execFileAsync = promisify(execFile)

suite('the web UI', { skip: skipWithoutBrowser }, () => {
  test('adds a plant, lists it, and suggests the next id', async (t) => {
    const ui = await openAsAda(t)
    assert.equal(await ui.getText('#range'), 'No plants yet. Add the first one above.')
    assert.equal(await ui.getValue('new-id'), '1')
    await ui.submitPlant(undefined, 'Monstera deliciosa', 'tropical')
    await ui.waitForText('#range', /^Id 1\. End of the list\.$/)
    assert.equal(await ui.getText('#message'), 'Added “\u2068Monstera deliciosa\u2069”.')
    assert.deepEqual([await ui.getListed('name'), await ui.getListed('tag')], [['Monstera deliciosa'], ['tropical']])
    assert.deepEqual(
      [await ui.getValue('new-id'), await ui.getValue('new-name'), await ui.getFocused()],
      ['2', '', 'new-name'],
    )
  })

  test('adds and deletes plants with ids beyond 2^53 exactly', async (t) => {
    const store = memoryStore()
    const ui = await openAsAda(t, { store })
    for (const id of ['-9223372036854775808', '9007199254740993', '9223372036854775807']) await ui.addPlant(id, id)
    assert.deepEqual(await ui.getListed('id'), await ui.getListed('name'))
    assert.equal(await ui.getValue('new-id'), '')
    await ui.deletePlant(2)
    await ui.waitForText('#message', /^Deleted/)
    const { plants } = await store.list('ada', { limit: 10, maxBytes: Infinity })
    assert.deepEqual(
      plants.map(({ id }) => id),
      [-(2n ** 63n), 2n ** 63n - 1n],
    )
  })

  test("doesn't submit an id that isn't a whole number", async (t) => {
    const ui = await openAsAda(t)
    for (const id of ['new-id', 'go-to-id']) {
      for (const text of ['x', '1e3', '1.5']) {
        await ui.fill('new-name', 'Moss')
        await ui.fill(id, text)
        await ui.page.keyboard.press('Enter')
        assert.equal(await ui.evaluate(`document.querySelector('#${id}').validity.patternMismatch`), true, text)
      }
      await ui.fill(id, '')
    }
    assert.equal(ui.requests.length, 1)
  })

  test("shows the service's message for an id that isn't an int64, and keeps the form", async (t) => {
    const ui = await openAsAda(t)
    await ui.submitPlant('9223372036854775808', 'Moss')
    await ui.waitForText('#message', /^The plant is invalid: id must be from -9223372036854775808 to /)
    assert.equal(await ui.getValue('new-id'), '9223372036854775808')
    await ui.goToId('9999999999999999999')
    await ui.waitForText('#message', /^The query is invalid: after must be a decimal integer from /)
    await ui.goToId('')
    await ui.waitForText('#message', /^$/)
  })

  test('shows whether another page follows, even behind a proxy that removes the Link header', async (t) => {
    const ui = await openAsAda(t, { store: createStoreWithPlants(51) })
    ui.intercept('GET', (response, next) => {
      response.setHeader = ((name: string, value: string) =>
        name === 'Link' ? response : ServerResponse.prototype.setHeader.call(response, name, value)) as never
      next()
    })
    await ui.page.reload()
    for (const range of ['Ids 1 to 25. More follow.', 'Ids 26 to 50. More follow.', 'Id 51. End of the list.']) {
      await ui.waitForText('#range', new RegExp(`^${range}$`))
      await ui.click('#next')
    }
  })

  test('reloads the list after 409, and suggests an id that is free', async (t) => {
    const store = memoryStore()
    const ui = await openAsAda(t, { store })
    for (let id = 1n; id <= 40n; id++) await store.create('ada', { id, name: `Fern ${id}` })
    await ui.submitPlant('1', 'Moss')
    await ui.waitForText('#message', /^You already have a plant with this id\./)
    await ui.waitForText('#list', /Fern 25/)
    await ui.page.waitForFunction(`document.querySelector('#new-id').value > 40`)
    assert.equal(await ui.getValue('new-name'), 'Moss')
    await ui.page.keyboard.press('Enter')
    await ui.waitForText('#message', /^Added/)
  })

  test('asks in the row before it deletes a plant, and focuses the next row afterwards', async (t) => {
    const ui = await openAsAda(t, { store: createStoreWithPlants(3) })
    await ui.clickInRow(2)
    assert.match(await ui.getText('#list > :nth-child(2)'), /This can't be undone\.\s+Delete/)
    await ui.clickInRow(2)
    assert.equal(await ui.isVisible('#list > :nth-child(2) p'), false)
    await ui.clickInRow(1)
    await ui.clickInRow(2)
    assert.equal(await ui.isVisible('#list > :nth-child(1) p'), false)
    await ui.click('#list > :nth-child(2) p button')
    await ui.waitForText('#message', /^Deleted “\u2068Fern 2\u2069”\.$/)
    await ui.waitForText('#list', /^(?![^]*Fern 2)/)
    assert.deepEqual(await ui.getListed('name'), ['Fern 1', 'Fern 3'])
    assert.equal(await ui.getFocused(), 'Delete plant 3, “\u2068Fern 3\u2069”')
  })

  test('deletes nothing and adds only one plant after double clicks', async (t) => {
    const ui = await openAsAda(t, { store: createStoreWithPlants(3) })
    await ui.page.click('#list > :nth-child(2) summary', { count: 2 })
    await ui.fill('new-name', 'Moss')
    await ui.page.click('#add button', { count: 2 })
    await ui.waitForText('#list', /4\s+Moss/)
    assert.deepEqual([ui.countRequests('DELETE'), ui.countRequests('POST')], [0, 1])
  })

  test('shows when a plant has already been deleted, and when the service rejects a plant', async (t) => {
    const store = createStoreWithPlants(2)
    const ui = await openAsAda(t, { store, maxBodyBytes: 100 })
    await store.delete('ada', 1n)
    await ui.deletePlant(1)
    await ui.waitForText('#message', /^You have no plant with this id\.$/)
    await ui.submitPlant('3', 'x'.repeat(100))
    await ui.waitForText('#message', /^The body is larger than 100 bytes/)
    assert.equal((await ui.getValue('new-name')).length, 100)
  })

  test('lists plants with a read-only token, and explains why it adds none', async (t) => {
    const tokens = { [TOKEN]: { owner: 'ada', access: 'read' } } as const
    const ui = await openAsAda(t, { store: createStoreWithPlants(2), tokens })
    await ui.submitPlant('3', 'Moss')
    await ui.waitForText('#message', /^This bearer token is read-only\.$/)
  })

  test('goes to the next and previous page, and to an id', async (t) => {
    const ui = await openAsAda(t, { store: createStoreWithPlants(60), maxLimit: 20 })
    assert.equal(await ui.getText('#range'), 'Ids 1 to 20. More follow.')
    await ui.click('#next')
    await ui.waitForText('#range', /^Ids 21 to 40\. More follow\.$/)
    await ui.click('#next')
    await ui.waitForText('#range', /^Ids 41 to 60\. End of the list\.$/)
    assert.equal(await ui.getFocused(), 'next')
    await ui.click('#previous')
    await ui.waitForText('#range', /^Ids 21 to 40/)
    await ui.goToId('60')
    await ui.waitForText('#range', /^Id 60\. End of the list\.$/)
    await ui.goToId('61')
    await ui.waitForText('#range', /^No plants with an id above 60\.$/)
    assert.equal(await ui.getText('#message'), "Plant 61 doesn't exist.")
    await ui.goToId('')
    await ui.waitForText('#range', /^Ids 1 to 20/)
  })

  test('shows the last requested page, whatever the order of the responses', async (t) => {
    const ui = await openAsAda(t, { store: createStoreWithPlants(60) })
    const release = ui.blockRequests('GET /plants')
    await ui.click('#next')
    await ui.waitForText('#range', /^Loading …$/)
    await ui.goToId('50')
    release()
    await ui.waitForText('#range', /^Ids 50 to 60/)
    await ui.page.waitForNetworkIdle({ idleTime: 100 })
    assert.match(await ui.getText('#range'), /^Ids 50 to 60/)
  })

  test('goes to the page of a plant that was added at the end', async (t) => {
    const ui = await openAsAda(t, { store: createStoreWithPlants(25) })
    await ui.submitPlant(undefined, 'Moss')
    await ui.waitForText('#range', /^Id 26\. End of the list\.$/)
    assert.equal(await ui.getValue('new-id'), '27')
  })

  test('reloads the list with its button, and when the window gets the focus', async (t) => {
    const store = createStoreWithPlants(1)
    const ui = await openAsAda(t, { store })
    await store.create('ada', { id: 2n, name: 'Moss' })
    await ui.click('#reload')
    await ui.waitForText('#list', /Moss/)
    await ui.clickInRow(1)
    await store.create('ada', { id: 3n, name: 'Ivy' })
    await ui.focusWindow()
    await ui.waitForText('#list', /Ivy/)
    assert.equal(await ui.isVisible('#list > :nth-child(1) p'), true)
  })

  test('keeps what is typed while a plant is being added', async (t) => {
    const ui = await openAsAda(t)
    const release = ui.blockRequests('POST')
    await ui.submitPlant(undefined, 'Moss')
    await ui.fill('new-name', 'Ivy')
    await ui.page.keyboard.press('Enter')
    release()
    await ui.waitForText('#message', /^Added “\u2068Moss\u2069”\.$/)
    assert.deepEqual([await ui.getValue('new-name'), ui.countRequests('POST')], ['Ivy', 1])
  })

  test('shows names as text, in their own writing direction', async (t) => {
    const names = ['<img src=x onerror="document.title = 1">', 'نخلة التمر', '  a  b  ', '🌵'.repeat(9999)]
    const ui = await openAsAda(t)
    for (const [index, name] of names.entries()) await ui.addPlant(String(index), name)
    assert.deepEqual(await ui.getListed('name'), names)
    assert.equal(await ui.evaluate(`getComputedStyle(document.querySelectorAll('#list .name')[1]).direction`), 'rtl')
  })

  test('logs each request with a curl command that repeats it', async (t) => {
    const store = memoryStore()
    const ui = await openAsAda(t, { store })
    await ui.addPlant('9223372036854775807', "Fern 'of' $HOME")
    const [summary, curl, response] = await ui.openLogEntry(2)
    assert.match(summary!, /^POST \/plants – 200 OK, \d+ ms$/)
    assert.match(response!, /^content-type: application\/json\n[^]*\n\n\{"name":"Fern 'of' \$HOME"\}$/m)
    await store.delete('ada', 2n ** 63n - 1n)
    const { stdout } = await execFileAsync('sh', ['-c', curl!], { env: { ...process.env, TOKEN } })
    assert.match(stdout, /^HTTP\/1.1 200 OK\r\n/)
    await ui.page.focus('#requests > :nth-child(2) .curl')
    assert.equal(await ui.evaluate('getSelection().toString()'), curl)
  })

  test('keeps the last 20 requests, and counts a list that is read again as one', async (t) => {
    const ui = await openAsAda(t, { store: createStoreWithPlants(60) })
    for (let index = 0; index < 3; index++) {
      await ui.click('#reload')
      await ui.page.waitForNetworkIdle({ idleTime: 50 })
    }
    assert.equal(await ui.evaluate(`document.querySelector('#requests').childElementCount`), 1)
    for (let id = 1; id <= 21; id++) {
      await ui.goToId(String(id))
      await ui.waitForText('#range', new RegExp(`^Ids ${id} to`))
    }
    assert.equal(await ui.evaluate(`document.querySelector('#requests').childElementCount`), 20)
  })

  test('works behind a proxy with a path prefix', async (t) => {
    const ui = await openPage(t, { store: createStoreWithPlants(1) })
    await ui.page.goto(`${ui.url}garden/#token=${TOKEN}`)
    await ui.waitForText('#list', /Fern 1/)
    await ui.addPlant('7', 'Moss')
    assert.equal(ui.countRequests('POST /garden/plants '), 1)
  })
})

suite('during an outage, the web UI', { skip: skipWithoutBrowser }, () => {
  test('reloads the list until the service is back', async (t) => {
    const ui = await openAsAda(t, { store: createStoreWithPlants(30) })
    const stop = ui.intercept('GET', (response) => response.destroy())
    await ui.click('#next')
    await ui.waitForText('#service', /^Unreachable – retrying$/)
    assert.equal(await ui.getText('#message'), 'The service is unreachable. The list loads when it is back.')
    stop()
    await ui.waitForText('#range', /^Ids 26 to 30/)
    assert.deepEqual([await ui.getText('#service'), await ui.getText('#message')], ['Ready', ''])
  })

  test('adds a plant once even if its first response is lost', async (t) => {
    const ui = await openAsAda(t)
    const stop = ui.intercept('POST', (response, next) => {
      response.writeHead = () => response.destroy()
      next()
    })
    await ui.submitPlant(undefined, 'Moss')
    await ui.openLogEntry(1)
    await ui.waitForText('#requests summary', /^POST \/plants – no response/)
    stop()
    await ui.waitForText('#message', /^Added/)
    await ui.waitForText('#list', /Moss/)
  })

  test("shows when it isn't known whether a plant was added, and keeps the form", async (t) => {
    const ui = await openAsAda(t)
    const stop = ui.respondWith('POST', 500, '{"error":50000,"message":"An unexpected error occurred."}')
    await ui.submitPlant(undefined, 'Moss')
    await ui.waitForText('#message', /^The service didn't confirm the change of “\u2068Moss\u2069”\. Check the list/)
    stop()
    assert.deepEqual([await ui.getValue('new-id'), await ui.getValue('new-name')], ['1', 'Moss'])
  })

  test("shows responses that aren't from the service as errors", async (t) => {
    const ui = await openAsAda(t, { store: createStoreWithPlants(1) })
    ui.respondWith('GET', 200, '<h1>Log in first</h1>')
    await ui.click('#reload')
    await ui.waitForText('#message', /^Unexpected response \(status 200\)/)
    assert.deepEqual(await ui.getListed('name'), ['Fern 1'])
  })
})
