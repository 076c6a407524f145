/** The time, in Unix ms. */
export const now = (): number => Date.now()

/** A number in [0, 1). */
export const random = (): number => Math.random()
