import ts from 'typescript'
import { isStage } from './rules.js'
import type { Sources } from './sources.js'

/** The rows that the marble file of a stage has: titles of `it` that begin with these words. */
export const rows = ['never', 'empty', 'one', 'many', 'source error', 'port error', 'early unsubscribe'] as const

/** Which rows are missing, as `test/streams/<stage>.test.ts: <row>`. A stage that takes no ports has no row for their errors. */
export function missingRows(sources: Sources): string[] {
  return [...sources].flatMap(([file, text]) => {
    if (!isStage(file)) return []
    const test = file.replace(/^streams\/(.+)\.ts$/, 'test/streams/$1.test.ts')
    const titles = titlesOf(sources.get(test) ?? '')
    const wanted = rows.filter((row) => row !== 'port error' || takesPorts(text))
    return wanted
      .filter((row) => !titles.some((title) => new RegExp(`^${row}\\b`, 'i').test(title)))
      .map((row) => `${test}: ${row}`)
  })
}

function titlesOf(text: string): string[] {
  const titles: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && node.expression.getText() === 'it') {
      const title = node.arguments[0]
      if (title && ts.isStringLiteralLike(title)) titles.push(title.text)
    }
    ts.forEachChild(node, visit)
  }
  visit(parse(text))
  return titles
}

function takesPorts(text: string): boolean {
  return parse(text).statements.some(
    (statement) =>
      ts.isFunctionDeclaration(statement) &&
      statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) &&
      statement.parameters.some(
        ({ name, type }) => /^ports$/.test(name.getText()) || /Ports\b/.test(type?.getText() ?? ''),
      ),
  )
}

const parse = (text: string): ts.SourceFile => ts.createSourceFile('x.ts', text, ts.ScriptTarget.Latest, true)
