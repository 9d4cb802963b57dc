// Screen 9: what happened in a range of time, and each chart as CSV.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { run, until } from './lib/run.mjs'
import { shop } from './lib/shop.mjs'

await run(async (w) => {
  const { page } = w
  const { events, people } = shop()
  await w.send(events)
  await w.open('/analytics?days=90')
  const tile = (name) => page.getByTestId(`tile-${name}`)
  await until('the people are counted', async () => assert.equal(await tile('People').innerText(), String(people.length)))
  const lately = events.filter((e) => Date.parse(e.timestamp) >= Date.now() - 90 * 86_400_000).length
  const have = Number((await tile('Events').innerText()).replaceAll(',', ''))
  assert.ok(have >= lately, `${have} events, ${lately} were sent`) // the service writes some of its own
  await page.locator('.uplot').first().waitFor()
  await w.axe('the overview')
  await w.shots('analytics')

  await page.getByRole('tab', { name: 'Events' }).click()
  await page.getByRole('region', { name: 'Events by type' }).getByRole('cell', { name: 'item_purchased' }).waitFor()
  const bought = events.filter((e) => e.event_type === 'item_purchased').length
  assert.ok((await page.getByRole('region', { name: 'Events by type' }).getByRole('row').filter({ hasText: 'item_purchased' }).innerText()).includes(String(bought)))
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download Events by type as CSV' }).click()])
  const csv = readFileSync(await file.path(), 'utf8')
  assert.ok(csv.includes(`item_purchased,${bought},`), csv)
  await w.axe('the events')
  await w.shots('analytics-events')

  for (const [tab, sees] of [['Messages', 'E-mail over time'], ['E-mail by domain', 'No e-mail was sent in this range'], ['Flows', 'People in flows']]) {
    await page.getByRole('tab', { name: tab, exact: true }).click()
    await page.getByText(sees).first().waitFor()
    await w.axe(tab)
  }
  assert.ok(page.url().includes('tab=flows') && page.url().includes('days=90'), page.url())

  await page.setViewportSize({ width: 390, height: 844 })
  await page.goto(`${w.url}/console/analytics?tab=events`)
  await page.getByRole('region', { name: 'Events by type' }).getByRole('cell', { name: 'page_viewed' }).waitFor()
  await until('the page fits a phone', () => page.evaluate(() => document.documentElement.scrollWidth <= 390))
  await page.evaluate(() => document.documentElement.setAttribute('data-mantine-color-scheme', 'dark'))
  await w.axe('the dark events on a phone')
})
