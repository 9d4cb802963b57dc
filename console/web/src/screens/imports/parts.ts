/** A part of a file as text, and how many bytes of the file are before it. */
export interface Part {
  offset: number
  text: string
  more: boolean
}

const partBytes = 1 << 20

/** Cuts a file into parts of text that end between two characters. What is no UTF-8 is refused. */
export async function* partsOf(file: Blob, size = partBytes): AsyncGenerator<Part> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const encoder = new TextEncoder()
  let offset = 0
  for (let at = 0; at === 0 || at < file.size; at += size) {
    const more = at + size < file.size
    let text: string
    try {
      text = decoder.decode(await file.slice(at, at + size).arrayBuffer(), { stream: more })
    } catch {
      throw new Error('The file is not in UTF-8. Save it as CSV UTF-8, and choose it again.')
    }
    yield { offset, text, more }
    offset += encoder.encode(text).length
  }
}
