/** Generated from the OpenAPI document by `npm run web-ui-types`. */
export interface components {
  schemas: {
    Plant: {
      /** @description The name of the plant. */
      name: string
      /** @description A tag that specifies the type of the plant. */
      tag?: string
    }
    /** @description A plant in a list. Has an `id` only if the request includes `include=id`. */
    ListedPlant: {
      /**
       * Format: int64
       * @description The identification number of the plant, unique among the plants of its owner. Parse it as a 64-bit integer: doubles are exact only up to 2^53.
       */
      id?: number
      /** @description The name of the plant. */
      name: string
      /** @description A tag that specifies the type of the plant. */
      tag?: string
    }
    /** @description Unknown members are ignored. */
    NewPlant: {
      /**
       * Format: int64
       * @description The identification number of the plant, unique among the plants of its owner. Parse it as a 64-bit integer: doubles are exact only up to 2^53.
       */
      id: number
      /** @description The name of the plant. */
      name: string
      /** @description A tag that specifies the type of the plant. */
      tag?: string
    }
    Error: {
      /**
       * Format: int32
       * @description The error code, for programs.
       */
      error: number
      /** @description What went wrong, for humans. The wording can change. */
      message: string
    }
  }
  responses: never
  parameters: never
  requestBodies: never
  headers: never
  pathItems: never
}
