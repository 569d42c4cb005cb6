export const SWITCH_QUESTION =
  'The link contains another token than the one in use. Switch to it? Cancel unless you trust the link.'

/** Returns the token from the URL fragment, and removes it from the URL. */
export function takeLinkToken(): string | undefined {
  const [address, ...rest] = location.href.split('#token=')
  if (rest.length === 0) return undefined
  history.replaceState(null, '', address)
  const text = rest.join('#token=')
  return text.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)))
}

/** Removes surrounding whitespace and the word `Bearer`, which are often copied along with a token. */
export function parseToken(text: string): string {
  return text.trim().replace(/^Bearer +/i, '')
}

/** Returns the validation error for a token, or an empty string. */
export function findTokenError(token: string, isFromLink: boolean): string {
  if (/^[\w\-.~+/]+=*$/.test(token)) return ''
  if (token === '' && !isFromLink) return 'Token is required.'
  const subject = isFromLink ? 'The token in the link is malformed: a' : 'A'
  return `${subject} token can contain only letters, digits and -._~+/, and can end with "=".`
}
