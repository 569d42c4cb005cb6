/**
 * Draws the CPU time of requests as a chart, of what `npm run bench -- --json` has printed. Writes SVG to the standard
 * output.
 *
 *     npm run bench:chart --silent -- results.json [--case <names>] [--contestant <names>] > cpu.svg
 */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { Run } from './report.ts'
import { median } from './statistics.ts'

interface Bar {
  readonly contestant: string
  readonly cpu: number
}

interface Group {
  readonly title: string
  readonly bars: readonly Bar[]
}

const WIDTH = 760
const LEFT = 110
const RIGHT = 60
const BAR = 14
const GAP = 3
const TITLE = 24
const MARGIN = 12

/** For light and dark pages. */
const STYLE = `
  text { font: 12px system-ui, sans-serif; fill: #333 }
  .title { font-weight: 600 }
  .name { text-anchor: end }
  .bar { fill: #b4bcc4 }
  .ours { fill: #2e7d4f }
  @media (prefers-color-scheme: dark) {
    text { fill: #ddd }
    .bar { fill: #5a646e }
    .ours { fill: #4caf7a }
  }`

/** One group for each case of each run, without the cases that were skipped. */
function toGroups(runs: readonly Run[], cases: Chosen, contestants: Chosen): Group[] {
  return runs.flatMap(({ node, results }) => {
    return results
      .filter((result) => result.skipped === undefined && cases(result.case))
      .map((result) => ({
        title: `${result.case}, Node ${node.slice(1)}`,
        bars: result.contestants
          .filter(({ contestant }) => contestants(contestant))
          .map(({ contestant, rounds }) => ({ contestant, cpu: median(rounds.map(({ cpu }) => cpu)) })),
      }))
  })
}

function draw(groups: readonly Group[]): string {
  const shapes: string[] = []
  let y = MARGIN
  for (const { title, bars } of groups) {
    y += TITLE
    shapes.push(`<text class="title" x="${MARGIN}" y="${y - 8}">${title}: CPU µs per request</text>`)
    const longest = Math.max(...bars.map(({ cpu }) => cpu))
    for (const { contestant, cpu } of bars) {
      const width = ((WIDTH - LEFT - RIGHT) * cpu) / longest
      const style = contestant === 'plant-store' ? 'bar ours' : 'bar'
      shapes.push(
        `<text class="name" x="${LEFT - 6}" y="${y + 11}">${contestant}</text>`,
        `<rect class="${style}" x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="${BAR}"/>`,
        `<text x="${(LEFT + width + 6).toFixed(1)}" y="${y + 11}">${cpu.toFixed(1)}</text>`,
      )
      y += BAR + GAP
    }
    y += GAP
  }
  const size = `width="${WIDTH}" height="${y + MARGIN}" viewBox="0 0 ${WIDTH} ${y + MARGIN}"`
  const label = 'CPU time of a request, by case and contestant'
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${label}">
<style>${STYLE}
</style>
${shapes.join('\n')}
</svg>`
}

type Chosen = (name: string) => boolean

/** All are chosen if no names are given. */
function chosen(names: string): Chosen {
  const wanted = names.split(',').filter((name) => name !== '')
  return (name) => wanted.length === 0 || wanted.includes(name)
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { case: { type: 'string', default: '' }, contestant: { type: 'string', default: '' } },
})
const runs = positionals.flatMap((file) => JSON.parse(readFileSync(file, 'utf8')) as Run[])
console.log(draw(toGroups(runs, chosen(values.case), chosen(values.contestant))))
