import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { assertLinearizable, type Listing, type Operation } from '../support/database/histories/linearizability.ts'

/** Makes operations on the plant 1, from one time to another. */
function createOperation(kind: Operation['kind'], succeeded: boolean | undefined) {
  return (start: number, end: number) => ({ kind, id: 1, name: `${kind} ${start}`, start, end, succeeded })
}
const [create, failedCreate, unknownCreate] = [
  createOperation('create', true),
  createOperation('create', false),
  createOperation('create', undefined),
]
const [del, failedDelete] = [createOperation('delete', true), createOperation('delete', false)]
function list(start: number, end: number, ...names: string[]) {
  return { start, end, plants: names.map((name) => ({ id: 1, name })) }
}

type Case = [name: string, operations: Operation[], listings?: Listing[]]

// Histories that a service could have come from each run under load.
suite('a history that no service could have', () => {
  const cases: Case[] = [
    ['of two creates without a delete', [create(1, 2), create(3, 4)]],
    ['of two creates at the same time', [create(1, 4), create(2, 3)]],
    ['of two deletes of one plant', [create(1, 2), del(3, 5), del(4, 6)]],
    ['of a delete before its create', [del(1, 2), create(3, 4)]],
    ['of a delete that came too late for the create after it', [create(1, 2), create(3, 4), del(5, 6)]],
    ['of a refused create of nothing', [create(1, 2), del(3, 4), failedCreate(5, 6)]],
    ['of a refused delete of a plant', [create(1, 2), failedDelete(3, 4)]],
    ['of a refused create before any', [failedCreate(1, 2), create(3, 4)]],
    ['that lists a deleted plant', [create(1, 2), del(3, 4)], [list(5, 6, 'create 1')]],
    ['that does not list a plant', [create(1, 2)], [list(3, 4)]],
    ['that lists a plant twice', [create(1, 2)], [list(3, 4, 'create 1', 'create 1')]],
    ['that lists the name of a refused create', [create(1, 2), failedCreate(3, 4)], [list(5, 6, 'create 3')]],
    ['that lists a name that was deleted', [create(1, 2), del(3, 4), create(5, 6)], [list(7, 8, 'create 1')]],
    ['that lists what nobody created', [], [list(1, 2, 'weed')]],
    ['that lists a plant of another id', [], [{ start: 1, end: 2, plants: [{ id: 2, name: 'create 1' }] }]],
    ['of a create that nobody knows of, and that took effect twice', [unknownCreate(1, 2), del(3, 4), del(5, 6)]],
    ['of a create that took effect before it began', [del(1, 2), unknownCreate(3, 4)]],
    ['of a plant that is lost', [create(1, 2), unknownCreate(3, 4)], [list(5, 6)]],
    ['whose lists go back', [create(1, 9)], [list(2, 3, 'create 1'), list(4, 5)]],
  ]
  for (const [name, operations, listings = []] of cases) {
    test(name, () => assert.throws(() => assertLinearizable(operations, listings), assert.AssertionError))
  }
})
