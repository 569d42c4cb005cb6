/** Where a document holds an empty text, list or object. */
export function emptyPlaces(value: unknown, place = ''): string[] {
  if (value === '') return [place]
  if (typeof value !== 'object' || value === null) return []
  const members = Object.entries(value)
  return members.length === 0 ? [place] : members.flatMap(([name, member]) => emptyPlaces(member, `${place}/${name}`))
}
