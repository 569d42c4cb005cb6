import type { Change } from './mutants.ts'

/** A mutant of a file: what it makes of which line. */
type Line = readonly [original: string, mutated: string]

/** Mutants with which the program does the same, by file and reason. No test can kill them. */
const EQUIVALENT: readonly (readonly [file: string, why: string, ...lines: Line[]])[] = [
  [
    'src/http/bearer.ts',
    'The word is a credential of no scheme, as is an absent field.',
    ["const [credential = '', second] = authorization", "const [credential = 'mutant', second] = authorization"],
  ],
  [
    'src/http/body.ts',
    'Further pieces are counted and dropped, a promise is settled twice, or a piece is copied: the same, only slower.',
    ["request.off('data', onData)", ';'],
    ["request.off('data', onData)", "request.off('', onData)"],
    [
      "request.on('end', () => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)))",
      "request.on('end', () => resolve(false ? chunks[0] : Buffer.concat(chunks)))",
    ],
    ['if (!request.readableEnded) resolve(undefined)', 'if (true) resolve(undefined)'],
  ],
  [
    'src/http/body.ts',
    'What comes when the time is over is counted to no end, and a response that has ended is ended again.',
    [
      "request.off('data', onData).off('end', stop).off('close', stop)",
      "request.off('', onData).off('end', stop).off('close', stop)",
    ],
    [
      "request.off('data', onData).off('end', stop).off('close', stop)",
      "request.off('data', onData).off('', stop).off('close', stop)",
    ],
  ],
  [
    'src/http/content.ts',
    'What nearly every request has is only asked first since that is quick.',
    [
      "if (contentType !== 'application/json' && !isJson(contentType ?? '')) throw new HttpError('wrongContentType')",
      "if (true && !isJson(contentType ?? '')) throw new HttpError('wrongContentType')",
    ],
    [
      "if (contentType !== 'application/json' && !isJson(contentType ?? '')) throw new HttpError('wrongContentType')",
      "if (contentType !== '' && !isJson(contentType ?? '')) throw new HttpError('wrongContentType')",
    ],
    [
      "if (contentEncoding !== '' && !isIdentity(contentEncoding)) throw new HttpError('wrongContentEncoding')",
      "if (true && !isIdentity(contentEncoding)) throw new HttpError('wrongContentEncoding')",
    ],
    [
      "if (contentEncoding !== '' && !isIdentity(contentEncoding)) throw new HttpError('wrongContentEncoding')",
      "if (contentEncoding !== 'mutant' && !isIdentity(contentEncoding)) throw new HttpError('wrongContentEncoding')",
    ],
  ],
  [
    'src/http/content.ts',
    'The word is no JSON either, and no parameter without a name or a value is a charset.',
    [
      "if (contentType !== 'application/json' && !isJson(contentType ?? '')) throw new HttpError('wrongContentType')",
      "if (contentType !== 'application/json' && !isJson(contentType ?? 'mutant')) throw new HttpError('wrongContentType')",
    ],
    [
      "const [, name = '', token, quoted = ''] = parameter",
      "const [, name = 'mutant', token, quoted = ''] = parameter",
    ],
    [
      "const [, name = '', token, quoted = ''] = parameter",
      "const [, name = '', token, quoted = 'mutant'] = parameter",
    ],
  ],
  [
    'src/http/content.ts',
    'At the end there is no parameter, and nothing is left.',
    ['while (PARAMETER.lastIndex < contentType.length) {', 'while (PARAMETER.lastIndex <= contentType.length) {'],
  ],
  [
    'src/http/json/reader.ts',
    'A text of ASCII alone is UTF-8 and the same in Latin-1, and this only asks again.',
    ['#ascii = true', '#ascii = false'],
    [
      "if (!this.#ascii && !isUtf8(this.#bytes)) throw this.#expected('UTF-8')",
      "if (true && !isUtf8(this.#bytes)) throw this.#expected('UTF-8')",
    ],
    ['if (bits < 0x80) return this.#latin1.slice(start, pos)', 'if (false) return this.#latin1.slice(start, pos)'],
  ],
  [
    'src/http/json/reader.ts',
    'Of a text that is not UTF-8, the message says that alone.',
    [
      "if (!this.#ascii && !isUtf8(this.#bytes)) throw this.#expected('UTF-8')",
      "if (!this.#ascii && !isUtf8(this.#bytes)) throw this.#expected('')",
    ],
  ],
  [
    'src/http/json/reader.ts',
    'The same bytes, number or character come of the slower way.',
    [
      'this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)',
      'this.#bytes = false ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)',
    ],
    [
      'if (byte <= BACKSLASH && (byte === BACKSLASH || byte === QUOTE || byte < SPACE)) break',
      'if (true && (byte === BACKSLASH || byte === QUOTE || byte < SPACE)) break',
    ],
    [
      'if (next === POINT || next === LOWER_E || next === UPPER_E) return this.#readDecimal(start)',
      'if (true) return this.#readDecimal(start)',
    ],
    [
      'if (this.#pos - first <= 15) return BigInt(negative ? -value : value)',
      'if (false) return BigInt(negative ? -value : value)',
    ],
    [
      'if (this.#pos - first <= 15) return BigInt(negative ? -value : value)',
      'if (this.#pos - first < 15) return BigInt(negative ? -value : value)',
    ],
    [
      'if (this.#pos - first <= 15) return BigInt(negative ? -value : value)',
      'if (this.#pos + first <= 15) return BigInt(negative ? -value : value)',
    ],
    ['byte <= SPACE &&', 'true &&'],
  ],
  [
    'src/http/json/reader.ts',
    'A space does not end the characters that are read before.',
    [
      "if (byte < SPACE) throw this.#expected('an escape for a control character')",
      "if (byte <= SPACE) throw this.#expected('an escape for a control character')",
    ],
  ],
  [
    'src/http/list-query.ts',
    'A query without parameters gives the same, only slower, and an empty parameter at the end is none.',
    ["if (query === '') return WHOLE_LIST", 'if (false) return WHOLE_LIST'],
    ["if (query === '') return WHOLE_LIST", "if (query === 'mutant') return WHOLE_LIST"],
    [
      'for (let start = 0, end; start <= query.length; start = end + 1) {',
      'for (let start = 0, end; start < query.length; start = end + 1) {',
    ],
  ],
  [
    'src/http/list-query.ts',
    'An empty text is no number either, whatever else is joined to it.',
    [
      "if (name === 'limit') limitText = limitText === undefined ? value : `${limitText}&${value}`",
      "if (name === 'limit') limitText = limitText === undefined ? value : ``",
    ],
    [
      'else afterText = afterText === undefined ? value : `${afterText}&${value}`',
      'else afterText = afterText === undefined ? value : ``',
    ],
  ],
  [
    'src/http/percent.ts',
    'Without an escape, decoding gives the same text, only slower.',
    ["if (!text.includes('%')) return text", 'if (false) return text'],
    ["if (!text.includes('%')) return text", "if (!text.includes('')) return text"],
  ],
  [
    'src/http/respond.ts',
    'A refusal whose body is here goes out a turn of the event loop later, and is the same.',
    [
      'nextTick(() => (isBodyAwaited(request) ? setImmediate(resolve) : resolve()))',
      'nextTick(() => (true ? setImmediate(resolve) : resolve()))',
    ],
  ],
  [
    'src/http/respond.ts',
    'A response with a body sets both fields in any case.',
    ['if (body === undefined) {', 'if (true) {'],
  ],
  [
    'src/http/respond.ts',
    'Only a debugger shows the description of a symbol.',
    ["const ADDED: unique symbol = Symbol('added fields')", "const ADDED: unique symbol = Symbol('')"],
  ],
  [
    'src/http/respond.ts',
    'A response that nobody has wrapped is the same if it is sent like a wrapped one, or in two pieces; only slower.',
    ['if (isBare(response)) {', 'if (false) {'],
    [
      'if (!isBare(response)) return void response.end(decode(body))',
      'if (true) return void response.end(decode(body))',
    ],
    ['response.cork()', ';'],
    ['response.uncork()', ';'],
    [
      "const isTaken = isBare(response) ? response.write(piece, 'latin1') : response.write(decode(piece))",
      "const isTaken = false ? response.write(piece, 'latin1') : response.write(decode(piece))",
    ],
  ],
  [
    'src/http/respond.ts',
    'Taking back a field that is not there changes nothing, only slower.',
    ['if (response.hasHeader(name)) response.removeHeader(name)', 'if (true) response.removeHeader(name)'],
  ],
  [
    'src/http/respond.ts',
    'The length is only asked first since that is quick.',
    [
      "if (name.length === 7 && name.toLowerCase() === 'upgrade') return true",
      "if (true && name.toLowerCase() === 'upgrade') return true",
    ],
    [
      "if (request.httpVersionMinor === 0 && name.length === 17 && name.toLowerCase() === 'transfer-encoding') return true",
      "if (request.httpVersionMinor === 0 && true && name.toLowerCase() === 'transfer-encoding') return true",
    ],
  ],
  [
    'src/http/route.ts',
    'The segments lead to the same resource, only slower.',
    ["start: text.endsWith('/{id}') ? text.slice(0, -4) : undefined,", 'start: false ? text.slice(0, -4) : undefined,'],
    [
      "start: text.endsWith('/{id}') ? text.slice(0, -4) : undefined,",
      "start: text.startsWith('/{id}') ? text.slice(0, -4) : undefined,",
    ],
    [
      "if (idAt === -1 && written === text) return { path, id: '', query }",
      "if (false) return { path, id: '', query }",
    ],
    [
      "if (idAt === -1 && written === text) return { path, id: '', query }",
      "if (idAt === 1 && written === text) return { path, id: '', query }",
    ],
    [
      'if (start === undefined || !written.startsWith(start) || written.length === start.length) continue',
      'if (start === undefined || !written.endsWith(start) || written.length === start.length) continue',
    ],
    [
      "if (!written.includes('/', start.length)) return { path, id: decodePercent(written.slice(start.length)), query }",
      "if (!written.includes('', start.length)) return { path, id: decodePercent(written.slice(start.length)), query }",
    ],
  ],
  [
    'src/http/route.ts',
    'What stands before a scheme is a first segment that no path has.',
    [
      "return target.replace(/^[a-z][a-z0-9+.-]*:\\/\\/[^/]*/i, '')",
      "return target.replace(/[a-z][a-z0-9+.-]*:\\/\\/[^/]*/i, '')",
    ],
  ],
  [
    'src/plant-store.ts',
    'The time is read, and nobody asks for it.',
    [
      'const startedAt = onResponse === undefined ? 0 : performance.now()',
      'const startedAt = false ? 0 : performance.now()',
    ],
  ],
  ['src/plants/listing.ts', 'A survey without plants has no last id.', ['let isCut = false', 'let isCut = true']],
  [
    'src/plants/listing.ts',
    'After the last one there is no id, and that is not less than another.',
    [
      'while (wanted.done !== true && wanted.value < id) wanted = surveyed.next()',
      'while (true && wanted.value < id) wanted = surveyed.next()',
    ],
  ],
  [
    'src/plants/listing.ts',
    'A piece that is just long enough gets one more plant, and the list is the same.',
    ['for (; end < stop && text.length < maxBytes; end++) {', 'for (; end < stop && text.length <= maxBytes; end++) {'],
  ],
  [
    'src/plants/plant.ts',
    'Without an escape, the loop takes nothing off, and neither it does at the end or before the first escape.',
    ["const firstEscape = json.indexOf('\\\\')", "const firstEscape = json.indexOf('')"],
    ['if (firstEscape === -1) return bytes', 'if (false) return bytes'],
    ['if (firstEscape === -1) return bytes', 'if (firstEscape === 1) return bytes'],
    [
      'for (let at = firstEscape, length; at < json.length; at += length) {',
      'for (let at = firstEscape, length; at <= json.length; at += length) {',
    ],
  ],
  [
    'src/plants/plant.ts',
    'JSON.stringify gives the same text for those that are plain, only slower.',
    [
      'return text.length < 100 && PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)',
      'return false ? `"${text}"` : JSON.stringify(text)',
    ],
    [
      'return text.length < 100 && PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)',
      'return true && PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)',
    ],
    [
      'return text.length < 100 && PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)',
      'return text.length <= 100 && PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)',
    ],
    [
      'return text.length < 100 && PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)',
      'return text.length >= 100 && PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)',
    ],
  ],
  [
    'src/plants/surveyed-ids.ts',
    'A distance of 127 takes two bytes then, and is read the same.',
    [
      'for (; distance > 127n; distance >>= 7n) this.#push(Number(distance & 127n) | 128)',
      'for (; distance >= 127n; distance >>= 7n) this.#push(Number(distance & 127n) | 128)',
    ],
  ],
  [
    'src/standalone/command-line.ts',
    'Neither text is an argument that the program takes.',
    ["switch (args.length > 1 ? 'too many' : argument) {", "switch (args.length > 1 ? '' : argument) {"],
  ],
  [
    'src/standalone/document.ts',
    'The word is no entity tag.',
    [
      "function isNamed(etag: string, ifNoneMatch = ''): boolean {",
      "function isNamed(etag: string, ifNoneMatch = 'mutant'): boolean {",
    ],
  ],
  [
    'src/standalone/drain.ts',
    'The listening socket closes a little later: the code that closes it is only compiled sooner.',
    ['new NetServer().close()', ';'],
  ],
  ['src/standalone/drain.ts', 'It is only asked whether the number has changed.', ['accepted++', '--accepted']],
  [
    'src/standalone/drain.ts',
    'Nothing tells the end of a time from the moment after it.',
    [
      'for (let isEmpty = false; !isEmpty && performance.now() < deadline;) {',
      'for (let isEmpty = false; !isEmpty && performance.now() <= deadline;) {',
    ],
    [
      'isEmpty = accepted === acceptedBefore && performance.now() - startedAt < SHORT_TURN_MS',
      'isEmpty = accepted === acceptedBefore && performance.now() - startedAt <= SHORT_TURN_MS',
    ],
  ],
  [
    'src/standalone/held-bytes.ts',
    'Nothing else in a row is a number before a colon and a space.',
    [
      'const ROW = /^ *\\d+: (\\S+ \\S+) \\S+ ([0-9A-F]{8}):/gm',
      'const ROW = / *\\d+: (\\S+ \\S+) \\S+ ([0-9A-F]{8}):/gm',
    ],
  ],
  [
    'src/standalone/held-bytes.ts',
    'Neither the heading of a table nor the end of a row is read, and a group without digits is zero too.',
    ["let rest = ''", "let rest = 'mutant'"],
    ["const end = text.lastIndexOf('\\n') + 1", "const end = text.lastIndexOf('\\n') - 1"],
    [
      "const zeros = new Array<string>(8 - head!.length - tail.length).fill('0')",
      "const zeros = new Array<string>(8 - head!.length - tail.length).fill('')",
    ],
  ],
  [
    'src/standalone/log.ts',
    'Nobody can tell exactly a MiB from a byte more, nor the end of the time from the moment after it.',
    ['if (stderr.writableLength > MAX_WAITING) {', 'if (stderr.writableLength >= MAX_WAITING) {'],
    [
      'while (process.stderr.writableLength > 0 && performance.now() < deadline) await setTimeout(10)',
      'while (process.stderr.writableLength > 0 && performance.now() <= deadline) await setTimeout(10)',
    ],
  ],
  [
    'src/standalone/program.ts',
    'Requests without a body are served the same, only slower.',
    ['{ ...settings, optimizeEmptyRequests: true },', '{ ...settings, optimizeEmptyRequests: false },'],
  ],
  [
    'src/standalone/reports.ts',
    'Nothing is logged all the same, only the fields are put together.',
    ['if (!isLogged && !isSlow) return', 'if (false) return'],
  ],
  [
    'src/standalone/request-ids.ts',
    'Only a debugger shows the description of a symbol.',
    ["const KEY: unique symbol = Symbol('id')", "const KEY: unique symbol = Symbol('')"],
  ],
  [
    'src/standalone/request-ids.ts',
    'Each id is as random, only made slower.',
    ['if (usedChars === random.length) {', 'if (true) {'],
  ],
  [
    'src/standalone/slices.ts',
    'A look more finds nothing to hand on.',
    ['if (socket.readableLength === 0) socket.read(0)', 'if (true) socket.read(0)'],
    ['if (isDue || socket.readableLength === 0) return', 'if (false) return'],
    ['if (isDue || socket.readableLength === 0) return', 'if (isDue || socket.readableLength === 0) ;'],
    ['if (isDue || socket.readableLength === 0) return', 'if (isDue && socket.readableLength === 0) return'],
    ['if (isDue || socket.readableLength === 0) return', 'if (false || socket.readableLength === 0) return'],
    ['if (isDue || socket.readableLength === 0) return', 'if (isDue || false) return'],
    ['isDue = true', ';'],
    ['isDue = true', 'isDue = false'],
  ],
  [
    'src/standalone/slices.ts',
    'With a request that is complete, as many bytes as its body has were handed on, unless its connection closes.',
    ['if (request === undefined || request.complete) return 0', 'if (request === undefined || false) return 0'],
  ],
  [
    'src/stores/page-builder.ts',
    'What was counted is not counted again, and counting makes the sum only less.',
    ['if (this.#bytes >= this.#maxBytes) this.#count()', 'if (true) this.#count()'],
  ],
  [
    'src/stores/batches.ts',
    'What is published to nobody is lost.',
    [
      'if (batches.hasSubscribers) batches.publish({ size } satisfies Batch)',
      'if (true) batches.publish({ size } satisfies Batch)',
    ],
  ],
  [
    'src/stores/memory/plant-tree.ts',
    'Ids behind the last entry are not read.',
    ['this.ids = this.ids.slice(0, at)', ';'],
  ],
  [
    'src/stores/memory/plant-tree.ts',
    'Before the first id there is none, and that is no other id.',
    ['if (at > 0 && this.ids[at - 1] === id) return false', 'if (true && this.ids[at - 1] === id) return false'],
    ['if (at > 0 && this.ids[at - 1] === id) return false', 'if (at >= 0 && this.ids[at - 1] === id) return false'],
    ['if (at < 0 || this.ids[at] !== id) return false', 'if (false || this.ids[at] !== id) return false'],
  ],
  [
    'src/stores/memory/plant-tree.ts',
    'A block of just as many entries is joined a little sooner.',
    ['if (child.size < SPARSE) this.#joinChild(at)', 'if (child.size <= SPARSE) this.#joinChild(at)'],
  ],
  [
    'src/stores/memory/short-list-builder.ts',
    'Plants are joined in vain, or one of them is not: the list does not fit a page.',
    ['for (; at < stop && text.length <= MAX_PAGE_BYTES; at++) {', 'for (; at < stop && true; at++) {'],
    [
      'for (; at < stop && text.length <= MAX_PAGE_BYTES; at++) {',
      'for (; at < stop && text.length < MAX_PAGE_BYTES; at++) {',
    ],
  ],
  [
    'src/stores/postgres/check.ts',
    'No timeline is compared before a system was met.',
    ["#timeline = ''", "#timeline = 'mutant'"],
  ],
  [
    'src/stores/postgres/connections.ts',
    'To wait for nothing takes no more than a turn of the queue of promises.',
    ['if (this.#silence.over !== undefined) await this.#silence.over', 'if (true) await this.#silence.over'],
  ],
  [
    'src/stores/postgres/postgres-store.ts',
    'Either half of a group may be the larger one.',
    ['const half = Math.ceil(group.length / 2)', 'const half = Math.floor(group.length / 2)'],
  ],
  [
    'src/stores/postgres/silence.ts',
    'Nothing is asked in the very moment in which the server was heard.',
    [
      'if (askedAt > this.#lastOver) this.over ??= this.#listen()',
      'if (askedAt >= this.#lastOver) this.over ??= this.#listen()',
    ],
  ],
  [
    'src/stores/postgres/cancel.ts',
    'An empty host is this machine too.',
    [
      "function addressOf({ host = 'localhost', port = 5432 }: Connection, ip = host): NetConnectOpts {",
      "function addressOf({ host = '', port = 5432 }: Connection, ip = host): NetConnectOpts {",
    ],
  ],
  [
    'src/stores/sqlite/connection.ts',
    'What finds the file locked in the very moment in which its time is over is tried once more or not.',
    [
      'if (!isBusy(error) || performance.now() >= deadline) throw this.explain(error)',
      'if (!isBusy(error) || performance.now() > deadline) throw this.explain(error)',
    ],
  ],
  [
    'src/stores/sqlite/connection.ts',
    'The store reads rows that are objects too, only more slowly.',
    ['statement.setReturnArrays?.(true)', ';'],
    ['statement.setReturnArrays?.(true)', 'statement.setReturnArrays?.(false)'],
    ['statement.raw?.(true)', ';'],
    ['statement.raw?.(true)', 'statement.raw?.(false)'],
  ],
  [
    'src/stores/sqlite/sqlite-store.ts',
    'The values of an array are the array, only made anew.',
    [
      'const [id, json] = (Array.isArray(row) ? row : Object.values(row as object)) as [bigint, string]',
      'const [id, json] = (false ? row : Object.values(row as object)) as [bigint, string]',
    ],
  ],
  [
    'src/stores/sqlite/write-queue.ts',
    'A write whose time is over in this very moment is tried once more or not.',
    [
      'const valid = this.#waiting.findIndex(({ expiresAt }) => expiresAt > now)',
      'const valid = this.#waiting.findIndex(({ expiresAt }) => expiresAt >= now)',
    ],
  ],
  [
    'src/plants/text.ts',
    'A text of ASCII alone has the same bytes, only made anew.',
    [
      "return Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1')",
      "return false ? text : Buffer.from(text).toString('latin1')",
    ],
  ],
  [
    'src/later-turn.ts',
    'Nothing tells the end of a share from the moment after it.',
    ['if (performance.now() < turnEnd) waiting.shift()!()', 'if (performance.now() <= turnEnd) waiting.shift()!()'],
  ],
]

export const EQUIVALENT_MUTANTS: readonly Change[] = EQUIVALENT.flatMap(([file, , ...lines]) =>
  lines.map(([original, mutated]) => ({ file, original, mutated })),
)
