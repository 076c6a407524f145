/** Suites that any store, driver or bus must pass, for any test runner. */
export type { SuiteRunner } from './runner.js'
export { stateStoreSuite, type StateStoreHarness } from './state-store-suite.js'
export { taskDriverSuite, type TaskDriverHarness } from './task-driver-suite.js'
