/** A number is a `bigint` if its exact value is whole and in int64 (`42`, `1.0`, `1e3`, `-0`), else rounded. */
export type JsonValue = null | boolean | number | bigint | string | readonly JsonValue[] | JsonObject

/** A JSON object: every member as it was written, in order, those that repeat a name included. */
export class JsonObject {
  readonly first: JsonMember | undefined

  constructor(first: JsonMember | undefined) {
    this.first = first
  }
}

/** A member of a {@link JsonObject}. They are linked, as an array of a few takes longer to make. */
export interface JsonMember {
  readonly name: string
  readonly value: JsonValue
  readonly next: JsonMember | undefined
}
