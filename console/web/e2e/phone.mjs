// A phone: labels of buttons and badges are whole, and nothing is wider than the screen.
// And an address that does not exist, from which one link leads on.
import assert from 'node:assert/strict'
import { run, until } from './lib/run.mjs'
import { shop } from './lib/shop.mjs'

await run(async (w) => {
  const { page } = w
  const { events, people } = shop()
  await w.send(events)
  await w.people('POST', '/segments', { name: 'Buyers in the United States or in Canada except those on a list', definition: { kind: 'activity', event: 'item_purchased', count: { op: '>=', value: 4 } } })
  await w.people('POST', '/webhooks', { url: 'https://hooks.example.com/services/customers/muster', events: ['segment.entered'] })
  const idle = people.find((p) => p.purchases.length === 0)
  const { profile_id } = await w.people('GET', `/profiles?email=${encodeURIComponent(idle.email)}`)

  await page.setViewportSize({ width: 390, height: 844 })
  /** Labels that are cut, of what matches. */
  const cut = (selector) => page.locator(selector).evaluateAll((all) => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent))
  const fits = () => until('the page fits a phone', () => page.evaluate(() => document.documentElement.scrollWidth <= 390))

  await w.open(`/people/${profile_id}?tab=segments`)
  await page.getByRole('button', { name: /^Why not in Buyers/ }).waitFor()
  await fits()
  assert.deepEqual(await cut('main .mantine-Button-label'), [])
  await w.shots('phone-why')
  await page.setViewportSize({ width: 390, height: 844 })

  await w.open('/settings/webhooks')
  await page.getByRole('cell', { name: 'active' }).waitFor()
  await fits()
  assert.deepEqual(await cut('main .mantine-Badge-label'), [])
  await w.axe('webhooks on a phone')

  await page.goto(`${w.url}/console/settings/no-such-page`)
  await page.getByRole('heading', { name: 'Page not found' }).waitFor()
  await w.axe('an address that does not exist')
  await page.getByRole('link', { name: 'Go to Home' }).click({ timeout: 5000 })
  await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
})
