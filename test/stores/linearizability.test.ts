import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { assertLinearizable, type Listing, type Operation } from '../support/database/histories/linearizability.ts'

/** Returns a function that creates operations on plant 1, with a start and an end time. */
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

// The tests under load check that valid histories are accepted.
suite('assertLinearizable rejects a history', () => {
  const cases: Case[] = [
    ['with two creates and no delete between them', [create(1, 2), create(3, 4)]],
    ['with two concurrent creates', [create(1, 4), create(2, 3)]],
    ['with two deletes of one plant', [create(1, 2), del(3, 5), del(4, 6)]],
    ['with a delete before the create', [del(1, 2), create(3, 4)]],
    ['with a second create before the delete', [create(1, 2), create(3, 4), del(5, 6)]],
    ['with a rejected create although the plant is deleted', [create(1, 2), del(3, 4), failedCreate(5, 6)]],
    ['with a rejected delete although the plant exists', [create(1, 2), failedDelete(3, 4)]],
    ['with a rejected create before any other create', [failedCreate(1, 2), create(3, 4)]],
    ['with a list that contains a deleted plant', [create(1, 2), del(3, 4)], [list(5, 6, 'create 1')]],
    ['with a list that lacks an existing plant', [create(1, 2)], [list(3, 4)]],
    ['with a list that contains a plant twice', [create(1, 2)], [list(3, 4, 'create 1', 'create 1')]],
    [
      'with a list that contains the name of a rejected create',
      [create(1, 2), failedCreate(3, 4)],
      [list(5, 6, 'create 3')],
    ],
    [
      'with a list that contains the name of a deleted plant',
      [create(1, 2), del(3, 4), create(5, 6)],
      [list(7, 8, 'create 1')],
    ],
    ['with a list that contains a plant that was never created', [], [list(1, 2, 'weed')]],
    [
      'with a list that contains a plant with an unknown id',
      [],
      [{ start: 1, end: 2, plants: [{ id: 2, name: 'create 1' }] }],
    ],
    ['in which a create with an unknown outcome takes effect twice', [unknownCreate(1, 2), del(3, 4), del(5, 6)]],
    ['in which a create takes effect before it starts', [del(1, 2), unknownCreate(3, 4)]],
    ['in which a plant is lost', [create(1, 2), unknownCreate(3, 4)], [list(5, 6)]],
    ['in which a later list returns an older state', [create(1, 9)], [list(2, 3, 'create 1'), list(4, 5)]],
  ]
  for (const [name, operations, listings = []] of cases) {
    test(name, () => assert.throws(() => assertLinearizable(operations, listings), assert.AssertionError))
  }
})
