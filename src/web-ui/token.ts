/** Several services can share an origin under different path prefixes. */
const STORAGE_KEY = `plant-store-token:${location.pathname}`

/** Returns the token in a text, without `Bearer`, which is often copied along. Undefined if it isn't a valid token. */
export function parseToken(text: string): string | undefined {
  return /^\s*(?:Bearer +)?([\w\-.~+/]+=*)\s*$/i.exec(text)?.[1]
}

/** Returns the text of a token in the URL fragment, and removes it from the address, so that bookmarks omit it. */
export function takeLinkToken(): string | undefined {
  if (!location.hash.startsWith('#token=')) return undefined
  const text = location.hash.slice('#token='.length)
  history.replaceState(null, '', location.pathname + location.search)
  return text.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)))
}

/** Keeps a token for reloads of this tab. Without a token, forgets it. */
export function saveToken(token = ''): void {
  try {
    sessionStorage.setItem(STORAGE_KEY, token)
  } catch {
    // The browser doesn't let pages store anything, so the token has to be entered again after a reload.
  }
}

/** Returns the token that this tab keeps, or an empty string. */
export function readSavedToken(): string {
  try {
    return sessionStorage.getItem(STORAGE_KEY) ?? ''
  } catch {
    return ''
  }
}
