/** The time, in Unix ms. */
export const now = (): number => Date.now()

/** Ms since some moment, for how long something takes: nobody sets this clock. */
export const elapsedMs = (): number => performance.now()

/** A number in [0, 1). */
export const random = (): number => Math.random()
