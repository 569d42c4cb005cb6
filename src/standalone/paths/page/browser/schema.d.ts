/** Made of the interface description by `npm run web-ui-types`. */
export interface components {
  schemas: {
    Plant: {
      /** @description The name of the plant. */
      name: string
      /** @description The type of the plant. */
      tag?: string
    }
    /** @description A plant of a list. It has its id if `include=id` asked for it. */
    ListedPlant: {
      /**
       * Format: int64
       * @description Identifies the plant among the plants of its owner. It is exact beyond 2^53 too.
       */
      id?: number
      /** @description The name of the plant. */
      name: string
      /** @description The type of the plant. */
      tag?: string
    }
    /** @description The service ignores all other members. */
    NewPlant: {
      /**
       * Format: int64
       * @description Identifies the plant among the plants of its owner. It is exact beyond 2^53 too.
       */
      id: number
      /** @description The name of the plant. */
      name: string
      /** @description The type of the plant. */
      tag?: string
    }
    Error: {
      /**
       * Format: int32
       * @description Tells programs what went wrong.
       */
      error: number
      /** @description Tells people what went wrong. */
      message: string
    }
  }
  responses: never
  parameters: never
  requestBodies: never
  headers: never
  pathItems: never
}
