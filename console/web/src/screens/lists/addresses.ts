/** The e-mail addresses in a text: one a line, or parted by commas, semicolons or spaces; each once, whatever its case. */
export function addressesIn(text: string): { addresses: string[]; faults: string[] } {
  const seen = new Set<string>()
  const addresses: string[] = []
  const faults: string[] = []
  for (const word of text.split(/[\s,;]+/)) {
    // As mail programs copy it: Ada <ada@example.com>. The name before it is left out.
    const address = word.replace(/^<(.*)>$/, '$1')
    if (!address) continue
    const key = address.toLowerCase()
    if (seen.has(key)) continue
    seen.add(key)
    if (/^[^@<>]+@[^@<>]+$/.test(address)) addresses.push(address)
    else faults.push(word)
  }
  return { addresses, faults }
}
