import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import ts from 'typescript'
import type { Sources } from './sources.js'

/** One import. `to` is a project path (`lib/errors.ts`), a builtin (`node:fs`) or the name of a package (`@grpc/grpc-js`). */
export interface Import {
  from: string
  to: string
  /** Gone at run time. */
  typeOnly: boolean
}

/** Every import of the sources: static, dynamic, re-exported, and those inside types. */
export function importsOf(sources: Sources): Import[] {
  return [...sources].flatMap(([from, text]) => {
    const found: Import[] = []
    const add = (specifier: ts.Node | undefined, typeOnly: boolean): void => {
      if (specifier && ts.isStringLiteral(specifier)) found.push({ from, to: target(from, specifier.text), typeOnly })
    }
    const visit = (node: ts.Node): void => {
      if (ts.isImportDeclaration(node))
        add(node.moduleSpecifier, node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword)
      if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, node.isTypeOnly)
      if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal, true)
      if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
        add(node.arguments[0], false)
      ts.forEachChild(node, visit)
    }
    visit(ts.createSourceFile(from, text, ts.ScriptTarget.Latest))
    return found
  })
}

function target(from: string, specifier: string): string {
  if (specifier.startsWith('.')) return posix.join(posix.dirname(from), specifier).replace(/\.js$/, '.ts')
  if (isBuiltin(specifier)) return specifier.startsWith('node:') ? specifier : `node:${specifier}`
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

/** The shortest way from one file to a target that is `wanted`, or nothing. */
export function wayTo(
  imports: readonly Import[],
  start: string,
  wanted: (to: string) => boolean,
): string[] | undefined {
  const next = new Map<string, string[]>()
  for (const { from, to } of imports) next.set(from, [...(next.get(from) ?? []), to])
  const seen = new Set([start])
  const ways = [[start]]
  for (const way of ways) {
    for (const to of next.get(way.at(-1)!) ?? []) {
      if (wanted(to)) return [...way, to]
      if (!seen.has(to)) ways.push([...way, to])
      seen.add(to)
    }
  }
  return undefined
}
