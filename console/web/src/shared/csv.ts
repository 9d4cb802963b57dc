export type Cell = string | number | boolean | null | undefined

// A spreadsheet takes a cell that begins with one of these for a formula.
const formula = /^[=+\-@\t\r]/

function cell(v: Cell): string {
  if (v === null || v === undefined) return ''
  if (typeof v !== 'string') return String(v)
  const text = formula.test(v) ? `'${v}` : v
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Rows as CSV (RFC 4180); texts that a spreadsheet would run as formulas get an apostrophe. */
export const toCsv = (header: string[], rows: Cell[][]) => [header, ...rows].map((r) => r.map(cell).join(',')).join('\r\n') + '\r\n'

/** Gives the browser a file to save. */
export function download(name: string, text: string, type = 'text/csv;charset=utf-8') {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const a = document.createElement('a')
  a.href = url
  a.download = name
  a.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
