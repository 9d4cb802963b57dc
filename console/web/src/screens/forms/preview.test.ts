import { expect, test } from 'vitest'
import { linesOf, pageOf, type Draft } from './preview'

const draft: Draft = {
  name: 'N', title: 'A <b>title', text: 'Line & line', button: 'Go "now"', message: '', redirect_url: '', double_opt_in: false, published: true, list_ids: [], allowed_origins: [],
  fields: [
    { name: 'email', label: 'E-mail', type: 'text', required: true },
    { name: 'attributes.size', label: 'Size', type: 'choice', options: ['<S>'] },
  ],
  consent: { text: 'I <agree>', channels: ['email'], required: true },
}

test('the preview shows texts as they are written, never as HTML', () => {
  const page = pageOf(draft)
  for (const part of ['A &lt;b&gt;title', 'Line &amp; line', 'Go &quot;now&quot;', '&lt;S&gt;', 'I &lt;agree&gt;', 'Size <small>(optional)</small>']) expect(page).toContain(part)
  expect(pageOf({ ...draft, consent: null })).not.toContain('agree')
})

test('lines are taken once each', () => {
  expect(linesOf(' a \n\nb\na')).toEqual(['a', 'b'])
})
