import { createPlantClient } from '../client/plant-client.ts'
import type { ListedPlant, PlantClient, PlantPage, PlantStoreError } from '../client/plant-client.ts'
import { explainError, quote } from './messages.ts'
import { loggedFetch } from './request-log.ts'

/** The cursors of all pages up to one page. The first page has the cursor `undefined`. */
type Cursors = readonly (bigint | undefined)[]

const PAGE_SIZE = 25
const RETRY_MS = 2000
const MIN_ID = -(2n ** 63n)
const MAX_ID = 2n ** 63n - 1n

/** Everything that belongs to one token. When it ends, it aborts its requests, and late results change nothing. */
export class Session {
  readonly token: string
  /** The page on display. */
  page: Readonly<{ plants: readonly ListedPlant[]; cursors: Cursors; next: bigint | undefined }> | undefined
  /** Why the latest request for a list failed. */
  listError: PlantStoreError | undefined
  /** The result of the latest action. */
  message = ''
  isAdding = false
  /** Called after each change, until the session ends. */
  readonly #onChange: () => void
  /** Called when the service rejects the token, which ends the session. */
  readonly #onRejection: () => void
  readonly #client: PlantClient
  /** Reads lists without retries, because the session itself reloads a list that failed. */
  readonly #reader: PlantClient
  #hasSeenLink = false
  readonly #controller = new AbortController()
  /** Aborts the latest request for a list, and its retries. */
  #listController = new AbortController()
  #requested: Cursors = [undefined]
  /** An id that turned out to be free. */
  #freeId: bigint | undefined

  constructor(token: string, onChange: () => void, onRejection: () => void) {
    this.token = token
    this.#onChange = onChange
    this.#onRejection = onRejection
    // The address of the page can contain a user name and a password, which `fetch` rejects.
    const url = new URL('.', location.origin + location.pathname)
    this.#client = createPlantClient({ url, token, fetch: loggedFetch })
    const fetchPage: typeof loggedFetch = async (...args) => {
      const response = await loggedFetch(...args)
      this.#hasSeenLink ||= response.headers.has('Link')
      return response
    }
    this.#reader = createPlantClient({ url, token, fetch: fetchPage, retries: 0 })
  }

  get hasEnded(): boolean {
    return this.#controller.signal.aborted
  }

  get isLoading(): boolean {
    return this.listError === undefined && this.page?.cursors !== this.#requested
  }

  get isUnreachable(): boolean {
    const { status = 200 } = this.listError ?? {}
    return status === 0 || status === 429 || status >= 500
  }

  /** An id for the next plant, if a free one is known. */
  get suggestedId(): bigint | undefined {
    const { plants = [], cursors = [], next } = this.page ?? {}
    const isEnd = cursors.length > 0 && next === undefined
    const idAfterEnd = isEnd ? (plants.at(-1)?.id ?? cursors.at(-1) ?? 0n) + 1n : MIN_ID
    const id = this.#freeId !== undefined && this.#freeId > idAfterEnd ? this.#freeId : idAfterEnd
    return id === MIN_ID || id > MAX_ID ? undefined : id
  }

  end(): void {
    this.#controller.abort()
    this.#listController.abort()
  }

  /** Loads the page after the last cursor. With a `soughtId`, goes on to the page where this id belongs. */
  async load(cursors: Cursors = this.#requested, soughtId?: bigint): Promise<void> {
    this.#listController.abort()
    const { signal } = (this.#listController = new AbortController())
    this.#requested = cursors
    this.#onChange()
    try {
      const page = await this.#readPage(cursors.at(-1), signal)
      if (signal.aborted) return
      if (soughtId !== undefined && page.next !== undefined && page.next < soughtId) {
        await this.load([...cursors, page.next], soughtId)
        return
      }
      this.page = { ...page, cursors }
      this.listError = undefined
    } catch (error) {
      if (signal.aborted || this.#endIfRejected(error)) return
      this.listError = error as PlantStoreError
      if (this.isUnreachable) setTimeout(() => void (signal.aborted || this.load()), RETRY_MS)
    }
    this.#onChange()
  }

  async #readPage(after: bigint | undefined, signal: AbortSignal): Promise<PlantPage> {
    const page = await this.#reader.listPage({ limit: PAGE_SIZE + 1, after, signal })
    const plants = page.plants.slice(0, PAGE_SIZE)
    // One plant more than a page shows whether another page follows, even if a proxy removes the `Link` header.
    const hasMore = page.plants.length > PAGE_SIZE || (this.#hasSeenLink && page.next !== undefined)
    return { plants, next: hasMore ? plants.at(-1)?.id : undefined }
  }

  async goToPage(cursors: Cursors): Promise<void> {
    this.message = ''
    await this.load(cursors)
  }

  /** Shows the page that begins with an id, or the first page. */
  async goToId(id = MIN_ID): Promise<void> {
    await this.goToPage(id === MIN_ID ? [undefined] : [undefined, id - 1n])
    const isShown = !this.hasEnded && this.page?.cursors === this.#requested
    if (!isShown || id === MIN_ID || this.page?.plants[0]?.id === id) return
    this.message = `Plant ${id} doesn't exist.`
    this.#onChange()
  }

  /** Adds a plant, passes the error or undefined to `onResult`, and reloads the list. */
  async add(plant: ListedPlant, onResult: (error: PlantStoreError | undefined) => void): Promise<void> {
    const isLast = this.suggestedId !== undefined && plant.id >= this.suggestedId
    this.isAdding = true
    this.message = `Adding ${quote(plant.name)} …`
    this.#onChange()
    const error = await this.#write(this.#client.create(plant, { signal: this.#controller.signal }), plant, 'Added')
    const freeId = error?.error === 40900 ? await this.#findFreeId(plant.id) : undefined
    if (this.hasEnded) return
    this.#freeId = isLast && error === undefined ? plant.id + 1n : freeId
    this.isAdding = false
    onResult(error)
    await this.load(this.#requested, isLast && error === undefined ? plant.id : undefined)
  }

  async delete(plant: ListedPlant): Promise<void> {
    await this.#write(this.#client.delete(plant.id, { signal: this.#controller.signal }), plant, 'Deleted')
    if (!this.hasEnded) await this.load()
  }

  async #write(call: Promise<void>, plant: ListedPlant, result: string): Promise<PlantStoreError | undefined> {
    try {
      await call
      this.message = `${result} ${quote(plant.name)}.`
      return undefined
    } catch (error) {
      if (!this.hasEnded && !this.#endIfRejected(error)) this.message = explainError(error as PlantStoreError, plant)
      return error as PlantStoreError
    }
  }

  #endIfRejected(error: unknown): boolean {
    if ((error as PlantStoreError).status !== 401) return false
    this.end()
    this.#onRejection()
    return true
  }

  /** Returns a free id after a used one, in few requests even if many ids are used. */
  async #findFreeId(usedId: bigint): Promise<bigint | undefined> {
    const { signal } = this.#controller
    for (let id = usedId + 1n; id <= MAX_ID; id += id - usedId) {
      const page = await this.#reader.listPage({ limit: 1, after: id - 1n, signal }).catch(() => undefined)
      if (page?.plants[0]?.id !== id) return page && id
    }
    return undefined
  }
}
