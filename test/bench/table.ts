import type { Summary } from './summary.js'

const columns: [title: string, cell: (row: Summary) => string][] = [
  ['bench', (row) => row.name],
  ['median', (row) => `${figure(row.median)} ${row.unit}`],
  ['p99', (row) => figure(row.p99)],
  ['limit', (row) => figure(row.limitMedian)],
  ['limit p99', (row) => figure(row.limitP99)],
  ['ratio', (row) => `${figure(row.ratio)}×`],
  ['aim', (row) => row.aim],
  ['', (row) => (row.met === undefined ? '' : row.met ? 'met' : 'MISSED')],
  ['rounds', (row) => String(row.rounds)],
]

/** The summaries as lines of text, one a bench, under a line of titles. */
export function table(rows: readonly Summary[]): string {
  const cells = [columns.map(([title]) => title), ...rows.map((row) => columns.map(([, cell]) => cell(row)))]
  const widths = columns.map((_, at) => Math.max(...cells.map((line) => line[at]!.length)))
  return cells
    .map((line) =>
      line
        .map((cell, at) => (at === 0 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Three digits that count. */
function figure(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3)
}
