import { expect, test } from 'vitest'
import { partsOf, type Part } from './parts'

const all = async (file: Blob, size: number) => {
  const out: Part[] = []
  for await (const p of partsOf(file, size)) out.push(p)
  return out
}

test('parts join to the file, whatever its characters and where they are cut', async () => {
  const text = '\ufeffname,city\nÄnne,München 🎉\n日本,東京\n'
  const bytes = new TextEncoder().encode(text)
  for (let size = 4; size < bytes.length + 2; size++) {
    const parts = await all(new Blob([bytes]), size)
    expect(parts.map((p) => p.text).join('')).toBe(text)
    let before = 0
    for (const [i, p] of parts.entries()) {
      expect(p.offset).toBe(before)
      expect(p.more).toBe(i < parts.length - 1)
      before += new TextEncoder().encode(p.text).length
    }
    expect(before).toBe(bytes.length)
  }
})

test('an empty file is one empty part, and what is no UTF-8 is refused', async () => {
  expect(await all(new Blob([]), 4)).toEqual([{ offset: 0, text: '', more: false }])
  await expect(all(new Blob([new Uint8Array([0x41, 0xe4, 0x42])]), 8)).rejects.toThrow('not in UTF-8')
})
