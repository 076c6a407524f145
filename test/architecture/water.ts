import ts from 'typescript'
import type { Sources } from './sources.js'

/** Where `subscribe` is right: the root, the queue, the outlets, the replay of present state. */
const subscribers = ['host', 'registry', 'main', 'outlets', 'present-state'].map((name) => `streams/${name}.ts`)

/** What ties a stream to the machine it runs on. Time comes from RxJS schedulers and from the events themselves. */
const impure = [
  'Date.now',
  'Math.random',
  'performance.now',
  'crypto.randomUUID',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'queueMicrotask',
  'process.nextTick',
]

/** What the sources do that a stream may not, as `file: words`. */
export function muddied(sources: Sources): string[] {
  return [...sources].flatMap(([file, text]) => {
    const found: string[] = []
    const visit = (node: ts.Node): void => {
      const words = wordsOf(node)
      const subscribes = words?.endsWith('.subscribe') && !subscribers.includes(file)
      if (words !== undefined && (subscribes || impure.includes(words))) found.push(`${file}: ${words}`)
      ts.forEachChild(node, visit)
    }
    visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true))
    return found
  })
}

function wordsOf(node: ts.Node): string | undefined {
  if (ts.isNewExpression(node) && node.expression.getText() === 'Date' && !node.arguments?.length) return 'Date.now'
  if (ts.isPropertyAccessExpression(node)) return `${lastName(node.expression)}.${node.name.text}`
  return ts.isIdentifier(node) ? node.text : undefined
}

function lastName(node: ts.Node): string {
  return ts.isPropertyAccessExpression(node) ? node.name.text : ts.isIdentifier(node) ? node.text : '…'
}
