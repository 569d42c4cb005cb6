export interface MetricFamily {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly samples: () => readonly Sample[]
}

/** The suffix, such as `_sum`, distinguishes the series of a histogram. */
type Sample = readonly [labels: Labels, value: number, suffix?: string]

/**
 * Labels of a series. Values must never come from clients, because a client could then create any number of series, and
 * because values aren't escaped in the output.
 */
type Labels = Readonly<Record<string, string | number>>

/** Formats metrics in the Prometheus text format. */
export function formatFamilies(families: readonly MetricFamily[]): string {
  const lines = families.flatMap(({ name, help, type, samples }) => [
    `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`,
    ...samples().map(([labels, value, suffix = '']) => `${name}${suffix}${formatLabels(labels)} ${value}\n`),
  ])
  return lines.join('')
}

function formatLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

export function createFamily(
  type: MetricFamily['type'],
  name: string,
  help: string,
  samples: MetricFamily['samples'],
): MetricFamily {
  return { name, help, type, samples }
}

export const createSingleMetric = (
  type: 'counter' | 'gauge',
  name: string,
  help: string,
  getValue: () => number | boolean,
): MetricFamily => createFamily(type, name, help, () => [[{}, Number(getValue())]])

export type Observe = (value: number) => void

export interface Histogram extends MetricFamily {
  /**
   * Adds a series, and returns the function that observes values for it. No other series may have the same labels. Keep
   * the function if values are observed often, because adding a series is slow.
   */
  readonly addSeries: (labels: Labels) => Observe
}

/** The bucket bounds that OpenTelemetry's semantic conventions recommend for durations, in seconds. */
const DURATION_BOUNDS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

export function createHistogram(name: string, help: string, bounds: readonly number[] = DURATION_BOUNDS): Histogram {
  const allSeries: { readonly labels: Labels; readonly counts: Float64Array; sum: number }[] = []
  return {
    ...createFamily('histogram', name, help, () =>
      allSeries.flatMap(({ labels, counts, sum }) => {
        let total = 0
        const buckets = Array.from(counts, (count, i): Sample => {
          total += count
          return [{ ...labels, le: bounds[i] ?? '+Inf' }, total, '_bucket']
        })
        return [...buckets, [labels, sum, '_sum'], [labels, total, '_count']]
      }),
    ),
    addSeries(labels) {
      const series = { labels, counts: new Float64Array(bounds.length + 1), sum: 0 }
      allSeries.push(series)
      return (value) => {
        let i = 0
        while (value > bounds[i]!) i++
        series.counts[i]!++
        series.sum += value
      }
    },
  }
}
