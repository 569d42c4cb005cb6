import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { blocksOf, readDocument } from '../support/documents.ts'
import { withoutCommand } from '../support/requirements.ts'
import { temporaryDirectory } from '../support/temporary-file.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const RUNNING = readDocument('docs/running.md')

test('docs/running.md shows the Dockerfile', () => {
  const [file] = blocksOf(RUNNING, 'dockerfile')
  assert.equal(file!.code, readFileSync(join(root, 'Dockerfile'), 'utf8'))
})

test('the Dockerfile builds a program that runs, from what .dockerignore lets in', (t) => {
  const directory = temporaryDirectory(t)
  const [everything, ...names] = readFileSync(join(root, '.dockerignore'), 'utf8').trimEnd().split('\n')
  assert.equal(everything, '*')
  for (const name of names) cpSync(join(root, name.slice(1)), join(directory, name.slice(1)), { recursive: true })
  // In place of npm ci.
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  execFileSync('npm', ['run', 'build'], { cwd: directory, stdio: 'ignore' })
  rmSync(join(directory, 'node_modules'))
  rmSync(join(directory, 'src'), { recursive: true })

  const [, check] = /^HEALTHCHECK CMD (.*)$/m.exec(readFileSync(join(root, 'Dockerfile'), 'utf8'))!
  const [, ...args] = JSON.parse(check!) as string[]
  const { status, stderr } = spawnSync(process.execPath, args, {
    cwd: directory,
    env: { HOST: '0.0.0.0', PORT: '1' },
    encoding: 'utf8',
  })
  assert.deepEqual([status, stderr], [1, 'plant-store: connect ECONNREFUSED 127.0.0.1:1\n'])
})

test('systemd finds nothing wrong with the unit', { skip: withoutCommand('systemd-analyze') }, (t) => {
  const path = join(temporaryDirectory(t), 'plant-store.service')
  const [unit] = blocksOf(RUNNING, 'ini')
  // It looks whether the command is there.
  writeFileSync(path, unit!.code.replace('/usr/bin/node', process.execPath))
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', path], { encoding: 'utf8' })
  assert.equal(
    stderr
      .split('\n')
      .filter((line) => line.includes('plant-store'))
      .join('\n'),
    '',
  )
  assert.equal(status, 0)
})
