// Screen 5: what types of events and attributes there are, and what of them drifts.
import assert from 'node:assert/strict'
import { run, until } from './lib/run.mjs'
import { shop } from './lib/shop.mjs'

await run(async (w) => {
  const { page } = w
  await w.open('/catalogue')
  await page.getByText('No event has come yet').waitFor()
  await w.axe('an empty catalogue')

  const { events, people } = shop()
  await w.send(events)
  const bought = people.flatMap((p) => p.purchases)
  await page.reload()
  const row = page.getByRole('row').filter({ hasText: 'item_purchased' })
  await row.filter({ hasText: String(bought.length) }).waitFor()
  await w.axe('the catalogue')
  await w.shots('catalogue')

  // Types, shares and the most frequent values are those that were sent.
  await row.getByRole('link').click()
  await page.getByRole('heading', { name: 'item_purchased', level: 1 }).waitFor()
  await page.getByText('drift').waitFor({ state: 'detached' })
  const category = page.getByRole('row').filter({ hasText: 'category' })
  await category.filter({ hasText: 'text' }).filter({ hasText: '100 %' }).waitFor()
  await category.getByRole('button').click()
  const shoes = people.flatMap((p) => p.purchases.map((_, j) => j)).filter((j) => j % 2 === 0).length
  await page.getByText('“shoes”').waitFor()
  await page.getByRole('row').filter({ hasText: '“shoes”' }).filter({ hasText: `${Math.round((shoes / bought.length) * 1000) / 10} %` }).waitFor()
  await until('the open row is in the address', () => page.url().includes('open=category'))
  await page.locator('.uplot canvas').first().waitFor()
  await w.axe('a type of events')
  await w.shots('catalogue-type')

  // A number that becomes a text is drift, and is said where it is.
  await w.send([{ event_type: 'item_purchased', user: { email: people[0].email }, properties: { value: 'free' } }])
  await page.reload()
  await page.getByText('One property drifts').waitFor()
  await page.getByText('Mostly number, also text').waitFor()
  await w.axe('a property that drifts')

  await page.getByRole('link', { name: 'The whole catalogue' }).click()
  await page.getByRole('tab', { name: 'Attributes of people' }).click()
  await page.getByRole('row').filter({ hasText: 'plan' }).first().waitFor()
  await w.axe('the attributes')

  await page.getByRole('button', { name: 'Define an event type' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('Order shipped')
  await page.getByRole('button', { name: 'Define it' }).click()
  await page.getByRole('tab', { name: 'Events' }).click()
  await page.getByRole('row').filter({ hasText: 'order_shipped' }).filter({ hasText: 'not yet' }).waitFor()

  // Described, and hidden: it is offered no more, and what uses it goes on.
  const segment = await w.people('POST', '/segments', { name: 'Viewers', definition: { kind: 'activity', event: 'page_viewed' } })
  const viewers = (await w.people('GET', `/segments/${segment._id}`)).count
  await page.getByRole('row').filter({ hasText: 'page_viewed' }).getByRole('link').click()
  await page.getByRole('button', { name: 'Describe it' }).focus()
  await page.keyboard.press('Enter')
  await until('the description has the focus', () => page.getByRole('textbox', { name: 'Description' }).evaluate((e) => e === document.activeElement))
  await page.keyboard.type('Sent by the page of each item')
  await w.axe('the description being written')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Hide it' }).click()
  await page.getByText('It is not offered where types are chosen.').waitFor()
  await w.axe('a hidden type')
  await w.shots('catalogue-hidden')
  await page.getByRole('link', { name: 'The whole catalogue' }).click()
  const hidden = page.getByRole('row').filter({ hasText: 'page_viewed' })
  await page.getByRole('row').filter({ hasText: 'item_purchased' }).waitFor()
  await until('the hidden type is not listed', async () => assert.equal(await hidden.count(), 0))
  await page.getByLabel('Show hidden types').click({ force: true })
  await hidden.getByText('Sent by the page of each item').waitFor()
  await w.axe('the catalogue with hidden types')
  await w.open('/segments/new')
  const event = page.getByRole('combobox', { name: 'Event' })
  await event.click()
  await page.getByRole('option', { name: /item_purchased/ }).waitFor()
  await until('the hidden type is not offered', async () => assert.equal(await page.getByRole('option', { name: /page_viewed/ }).count(), 0))
  await w.send([{ event_type: 'page_viewed', user: { email: 'fresh@example.com' } }])
  assert.equal((await w.people('GET', `/segments/${segment._id}`)).count, viewers + 1)
  await w.open('/catalogue?hidden=true')
  await hidden.waitFor()

  await page.setViewportSize({ width: 390, height: 844 })
  await until('the page fits a phone', () => page.evaluate(() => document.documentElement.scrollWidth <= 390))
  await page.evaluate(() => document.documentElement.setAttribute('data-mantine-color-scheme', 'dark'))
  await w.axe('the dark catalogue on a phone')
})
