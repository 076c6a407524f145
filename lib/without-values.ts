/** A text without any of the values, as they are or as somebody may have written them, also where it was cut in the midst of one. */
export function withoutValues(text: string, values: readonly string[]): string {
  const found = values.flatMap(writingsOf)
  found.sort((a, b) => b.length - a.length) // so that none is left in parts
  const whole = found.reduce((rest, value) => rest.replaceAll(value, '***'), text)
  return whole.includes(cut) ? found.reduce(withoutStart, whole) : whole
}

/** What stands where the rest of a text was left out. */
export const cut = '…'

/** How many characters of a value that was cut may stay: fewer are found in any text. */
const harmless = 3

/** Files end in a line break that drivers leave out, errors are put on one line, texts are quoted, and addresses encoded. */
function writingsOf(value: string): string[] {
  const trimmed = value.trim()
  const ways = [value, trimmed, trimmed.replaceAll(/\s+/g, ' ')]
  const all = ways.flatMap((one) => [
    one,
    JSON.stringify(one).slice(1, -1),
    encodeURIComponent(one.replaceAll(/\p{Cs}/gu, '\ufffd')),
  ])
  return [...new Set(all)].filter((one) => one !== '')
}

function withoutStart(text: string, value: string): string {
  for (let length = value.length - 1; length > harmless; length--) {
    const start = value.slice(0, length) + cut
    if (text.includes(start)) return text.replaceAll(start, `***${cut}`)
  }
  return text
}
