import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { originsOf, snippets } from './snippets'

describe('snippets', () => {
  it.each(['browser', 'server'] as const)('have the address and the key of a %s source, and ids of their own', (kind) => {
    const list = snippets(kind, 'https://muster.example.com', 'wk_abc')
    expect(list.length).toBeGreaterThan(1)
    for (const s of list) {
      expect(s.code, s.id).toContain('wk_abc')
      expect(s.code, s.id).toMatch(/https:\/\/muster\.example\.com['"/]/)
    }
    expect(new Set(list.map((s) => s.id)).size).toBe(list.length)
  })
  it('are the code of docs/sending-events.md, which a test runs', () => {
    const page = readFileSync(new URL('../../../../../docs/sending-events.md', import.meta.url), 'utf8')
    const lines = (text: string) => text.split('\n').map((l) => l.trim()).filter((l) => l !== '')
    for (const s of (['browser', 'server'] as const).flatMap((kind) => snippets(kind, 'https://muster.example.com', 'wk_YOUR_KEY')).filter((s) => s.id !== 'curl')) {
      const title = s.id === 'analytics-next' ? 'Browsers' : s.label
      const block = new RegExp(`^### ${title.replace('.', '\\.')}\n\n\`\`\`\\w+\n(.*?)^\`\`\`$`, 'ms').exec(page)
      expect(block, title).not.toBeNull()
      const documented = lines(block![1]!)
      for (const line of lines(s.code)) expect(documented, `${s.id}: ${line}`).toContain(line)
    }
  })
  it('show a page no SDK of servers, which would need a secret', () => {
    expect(snippets('browser', 'https://m', 'k').map((s) => s.id)).toEqual(['analytics-next', 'curl'])
  })
  it('keep the handler without which RudderStack ends the application', () => {
    expect(snippets('server', 'https://m', 'k').find((s) => s.id === 'rudder-node')?.code).toContain('errorHandler')
  })
})

describe('originsOf', () => {
  it('takes lines, commas and spaces, each origin once', () => {
    expect(originsOf(' https://a.example\nhttps://b.example, https://a.example\n')).toEqual(['https://a.example', 'https://b.example'])
    expect(originsOf(' \n')).toEqual([])
  })
})
