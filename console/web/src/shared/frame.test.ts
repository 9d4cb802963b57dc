import { expect, it } from 'vitest'
import { frame, hasImages } from './frame'

it('guards a message before anything of it', () => {
  for (const html of ['<p>Hello</p>', '<html lang="en"><body><img src="https://a.example/x.png"></body></html>', '<!doctype html><HTML><head data-x="1"><style>p{}</style></head><body></body></HTML>']) {
    const text = frame(html)
    const policy = text.indexOf('img-src data:')
    expect(policy).toBeGreaterThan(0)
    for (const own of ['<img', '<style', '<p>']) if (text.includes(own)) expect(text.indexOf(own)).toBeGreaterThan(policy)
  }
  expect(frame('<!doctype html><html><head></head></html>')).toMatch(/^<!doctype html><html><head><meta/)
})

it('knows pictures that are not shown', () => {
  expect(hasImages('<img alt="" src="https://a.example/x.png">')).toBe(true)
  expect(hasImages('<td style="background:url(https://a.example/x.png)">')).toBe(true)
  expect(hasImages('<img src="data:image/png;base64,AA==">')).toBe(false)
})
