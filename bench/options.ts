import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { type Case, CASES } from './cases.ts'
import { type Contestant, PEERS, PLANT_STORE_MAP, PROGRAM_METRICS } from './contestants.ts'
import type { Settings } from './measure.ts'
import type { Wire } from './report/table.ts'
import { STORE_CASES } from './store-cases.ts'

export interface Options extends Settings {
  readonly help: boolean
  /** What the requests go over. */
  readonly wire: Wire
  readonly json: boolean
  readonly rounds: number
  readonly cases: readonly Case[]
  /** Names of the optional contestants that take part. */
  readonly against: ReadonlySet<string>
  /** Contestants of another build, by the path of their file. */
  readonly externalContestants: readonly Contestant[]
  /** The versions of Node to run on; none is the one that runs. */
  readonly nodeVersions: readonly string[]
}

const caseNames = CASES.map(({ name }) => name)
const storeCaseNames = STORE_CASES.map(({ name }) => name)
const peerNames = PEERS.map(({ name }) => name)
const optionalNames = [...peerNames, PLANT_STORE_MAP.name, PROGRAM_METRICS.name]

export const HELP = `Usage: npm run bench -- [options]

Measures what a request costs: each contestant in a process of its own, side by side, in several rounds.

  --case <names>        only these of ${caseNames.join(', ')},
                        or of those that take a database: ${storeCaseNames.join(', ')};
                        "stores" is all of the latter;
                        or "processes" alone: 1, 2 and 4 programs on one port
  --against <names>     also these of ${optionalNames.join(', ')}; "peers" is all but the last two
                        or contestants of other builds by their file, ../before/bench/contestants/plant-store.js
  --wire <kind>         "socket", or "memory": without the kernel, client and server in one process, a fresh one for
                        each round; tells apart what costs nearly the same
  --connections <n>     keep-alive connections (64)
  --pipelining <n>      requests that a connection sends ahead of their answers (1)
  --duration <seconds>  time that each contestant is measured in a round (2); in memory, 80,000 requests at most
  --rounds <n>          the most rounds, of which the median is shown (15); fewer do, from 9 on, if each ratio of CPU
                        time is known to 3 %, or 2 % in memory
  --node <versions>     runs on these versions of Node, such as 24,26; they come from npm
  --profile <folder>    writes a CPU profile of each server into the folder
  --json                prints every round as JSON in place of the tables: an array with the run of each Node
  --help                prints this

Names are separated by commas.`

/** @throws TypeError that says which option is wrong, and what it takes */
export function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      case: { type: 'string', default: caseNames.join() },
      against: { type: 'string', default: '' },
      wire: { type: 'string', default: 'socket' },
      connections: { type: 'string', default: '64' },
      pipelining: { type: 'string', default: '1' },
      duration: { type: 'string', default: '2' },
      rounds: { type: 'string', default: '15' },
      node: { type: 'string', default: '' },
      profile: { type: 'string' },
    },
  })
  const cases = new Set(parseNames('case', values.case, [...caseNames, 'stores', ...storeCaseNames]))
  if (cases.has('stores')) for (const name of storeCaseNames) cases.add(name)
  const { wire, pipelining, profile } = values
  if (wire !== 'socket' && wire !== 'memory') throw new TypeError(`--wire takes socket or memory; not "${wire}"`)
  if (
    wire === 'memory' &&
    (pipelining !== '1' || profile !== undefined || storeCaseNames.some((name) => cases.has(name)))
  ) {
    throw new TypeError('--wire memory takes no --pipelining, no --profile and no case that takes a database')
  }
  const contestantFiles = values.against.split(',').filter((name) => name.endsWith('.js'))
  const contestantNames = values.against.split(',').filter((name) => !contestantFiles.includes(name))
  const against = parseNames('against', contestantNames.join(), ['peers', ...optionalNames])
  return {
    help: values.help,
    wire,
    externalContestants: contestantFiles.map((file) => ({ name: file, file: pathToFileURL(resolve(file)).href })),
    json: values.json,
    cases: [...CASES, ...STORE_CASES].filter(({ name }) => cases.has(name)),
    against: new Set(against.flatMap((name) => (name === 'peers' ? peerNames : name))),
    connections: parsePositiveInteger('connections', values.connections),
    pipelining: parsePositiveInteger('pipelining', pipelining),
    duration: parsePositiveNumber('duration', values.duration),
    rounds: parsePositiveInteger('rounds', values.rounds),
    nodeVersions: parseVersions(values.node),
    profileDirectory: profile,
  }
}

function parseNames(option: string, text: string, allowed: readonly string[]): string[] {
  const given = text.split(',').filter((name) => name !== '')
  const invalid = given.find((name) => !allowed.includes(name))
  if (invalid !== undefined) throw new TypeError(`--${option} takes ${allowed.join(', ')}; not "${invalid}"`)
  return given
}

function parseVersions(text: string): string[] {
  const given = text.split(',').filter((version) => version !== '')
  const invalid = given.find((version) => !/^\d+(\.\d+){0,2}$/.test(version))
  if (invalid !== undefined) throw new TypeError(`--node takes versions such as 24,26.1; not "${invalid}"`)
  return given
}

function parsePositiveNumber(option: string, text: string): number {
  const value = Number(text)
  if (!(value > 0 && value < Infinity)) throw new TypeError(`--${option} takes a number above 0; not "${text}"`)
  return value
}

function parsePositiveInteger(option: string, text: string): number {
  const value = parsePositiveNumber(option, text)
  if (!Number.isInteger(value)) throw new TypeError(`--${option} takes a whole number; not "${text}"`)
  return value
}
