import type { BenchRun } from './table.ts'
import { median } from './statistics.ts'

const WIDTH = 760
const LEFT_MARGIN = 220
const RIGHT_MARGIN = 60
const BAR_HEIGHT = 14
const BAR_GAP = 3
const TITLE_HEIGHT = 24
const MARGIN = 12

const OWN_CONTESTANTS = ['plant-store', 'program']

/** Supports light and dark color schemes. */
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

/**
 * Draws the CPU time per request as an SVG bar chart, with a group of bars for each case.
 * @param caseTitles the titles of the groups, by case
 * @param contestantTitles the titles of the bars, by contestant
 */
export function drawChart(
  { node, results }: BenchRun,
  caseTitles: Readonly<Record<string, string>>,
  contestantTitles: Readonly<Record<string, string>>,
): string {
  const groups = results.filter((result) => result.case in caseTitles)
  const shapes: string[] = []
  let y = MARGIN
  for (const { case: name, contestants: rows } of groups) {
    const bars = rows
      .filter(({ contestant }) => contestant in contestantTitles)
      .map(({ contestant, rounds }) => ({ contestant, cpu: median(rounds.map(({ cpu }) => cpu)) }))
    y += TITLE_HEIGHT
    shapes.push(
      `<text class="title" x="${MARGIN}" y="${y - 8}">${caseTitles[name]!}: CPU µs per request, Node ${node.slice(1)}</text>`,
    )
    const maxCpu = Math.max(...bars.map(({ cpu }) => cpu))
    for (const { contestant, cpu } of bars) {
      const width = ((WIDTH - LEFT_MARGIN - RIGHT_MARGIN) * cpu) / maxCpu
      const style = OWN_CONTESTANTS.includes(contestant) ? 'bar ours' : 'bar'
      shapes.push(
        `<text class="name" x="${LEFT_MARGIN - 6}" y="${y + 11}">${contestantTitles[contestant]!.replaceAll('`', '')}</text>`,
        `<rect class="${style}" x="${LEFT_MARGIN}" y="${y}" width="${width.toFixed(1)}" height="${BAR_HEIGHT}"/>`,
        `<text x="${(LEFT_MARGIN + width + 6).toFixed(1)}" y="${y + 11}">${cpu.toFixed(1)}</text>`,
      )
      y += BAR_HEIGHT + BAR_GAP
    }
    y += BAR_GAP
  }
  const size = `width="${WIDTH}" height="${y + MARGIN}" viewBox="0 0 ${WIDTH} ${y + MARGIN}"`
  const label = 'CPU time per request, by request and service'
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${label}">
<style>${STYLE}
</style>
${shapes.join('\n')}
</svg>`
}
