/** The readiness of the service, as displayed. */
export type Readiness = 'Ready' | 'Starting' | 'Unreachable – retrying'

const TIMEOUT_MS = 30_000

/** @param previous the readiness before this call; once a service has been ready, it's never shown as starting */
export async function fetchReadiness(previous: Readiness | undefined): Promise<Readiness> {
  try {
    const response = await fetch('readyz', { cache: 'no-store', signal: AbortSignal.timeout(TIMEOUT_MS) })
    const { status, error } = (await response.json()) as { status?: unknown; error?: unknown }
    if (status === 'ready') return 'Ready'
    if (error !== undefined && (previous === undefined || previous === 'Starting')) return 'Starting'
  } catch {
    // The service is unreachable, or something else responded.
  }
  return 'Unreachable – retrying'
}
