/** The two functions of a test runner that a suite needs: those of mocha, of vitest, of `node:test`. */
export interface SuiteRunner {
  describe(name: string, body: () => void): unknown
  it(name: string, body: () => Promise<void>): unknown
}
