/** Made of the interface description by `npm run page-types`. */
export interface components {
  schemas: {
    Plant: {
      /** @description The name of the plant. */
      name: string
      /** @description Says what type of plant it is. */
      tag?: string
    }
    /** @description Other members are ignored. */
    NewPlant: {
      /**
       * Format: int64
       * @description Identifies the plant among those of its owner; exact beyond 2^53 too.
       */
      id: number
      /** @description The name of the plant. */
      name: string
      /** @description Says what type of plant it is. */
      tag?: string
    }
    Error: {
      /**
       * Format: int32
       * @description Says what went wrong, to a program.
       */
      error: number
      /** @description Says what went wrong, to people. */
      message: string
    }
  }
  responses: never
  parameters: never
  requestBodies: never
  headers: never
  pathItems: never
}
