import { SettingError } from './variables.ts'

const PREFIX = 'PLANT_STORE_'
/** Variables that Kubernetes makes for a service called `plant-store` begin like our settings do. */
const SERVICE_LINK = /_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/
/** The value of such a variable whose name could also be that of a setting. */
const SERVICE_URL = /^(?:tcp|udp|sctp):\/\//

export function withoutServiceLinks(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const isOurs = ([name, value]: [string, string | undefined]): boolean =>
    !SERVICE_LINK.test(name) && !(name.endsWith('_PORT') && SERVICE_URL.test(String(value)))
  return Object.fromEntries(Object.entries(environment).filter(isOurs))
}

/** A misspelt PLANT_STORE_TOKENS must never start a service with a demo token. @throws SettingError */
export function checkVariableNames(environment: NodeJS.ProcessEnv, known: readonly string[]): void {
  for (const name of Object.keys(environment)) {
    if (!name.startsWith(PREFIX) || known.includes(name)) continue
    throw new SettingError(name, `is no setting; the nearest one is ${findNearest(name, known)}`)
  }
}

function findNearest(name: string, known: readonly string[]): string {
  const distances = known.map((other) => measureDistance(withoutPrefix(name).toUpperCase(), withoutPrefix(other)))
  return known[distances.indexOf(Math.min(...distances))]!
}

/** PLANT_STORE_PORT is PORT with our prefix. */
function withoutPrefix(name: string): string {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name
}

/** How many characters must be inserted, removed or replaced (Levenshtein). Takes the product of the lengths. */
function measureDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (const [i, char] of Array.from(a).entries()) {
    const next = [i + 1]
    for (const [j, other] of Array.from(b).entries()) {
      next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (char === other ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]!
}
