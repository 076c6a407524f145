export { marbles, type MarbleHelpers } from './marbles.js'
