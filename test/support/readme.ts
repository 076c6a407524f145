import { readFileSync } from 'node:fs'

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')

/** The cells of the first table under a heading of the README, row by row, without its head. */
export function readmeTable(heading: string): string[][] {
  const [, rest] = readme.split(`\n## ${heading}\n`)
  if (rest === undefined) throw new Error(`the README has no section ${heading}`)
  const rows =
    /(?:^\|.*\|\n)+/m
      .exec(rest.split('\n## ')[0] ?? '')?.[0]
      .trim()
      .split('\n') ?? []
  return rows.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}
