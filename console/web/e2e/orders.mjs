// Orders and revenue: the ready flow for carts goes live as it is, a person shows orders and the
// cart, analytics show what came in by day, and the windows of attribution are saved.
import assert from 'node:assert/strict'
import { run, until } from './lib/run.mjs'

await run(async (w) => {
  const { page } = w
  const user = { email: 'ann@example.com', first_name: 'Ann' }
  const sent = await w.send([
    { event_type: 'order_placed', user, properties: { order_id: 'A-1', total: 59.9, currency: 'EUR', items: [{ product_id: 'sku-7', name: 'Shoe', quantity: 2, price: 29.95 }] } },
    { event_type: 'order_refunded', user, properties: { order_id: 'A-1', amount: 9.9 } },
    { event_type: 'order_placed', user, properties: { order_id: 'A-2', total: 1200, currency: 'USD' } },
  ])
  // At a later millisecond: an order at the time of a cart follows it.
  await w.send([{ event_type: 'cart_updated', user, properties: { items: [{ name: 'Hat' }], total: 15, currency: 'EUR' } }])

  await w.open('/flows')
  await page.getByRole('button', { name: 'Abandoned cart' }).first().click()
  await page.waitForURL(/flows\/flw_/)
  const [flow] = await w.people('GET', '/flows')
  assert.equal((await w.people('POST', `/flows/${flow._id}/publish`)).status, 'live')
  await w.open('/flows')
  await page.getByRole('row', { name: /Abandoned cart/ }).waitFor()
  await w.axe('the flows')
  await w.shots('flows-ready')

  await w.open(`/people/${sent.results[0].profile_id}?tab=orders`)
  const revenue = page.getByRole('region', { name: 'Revenue', exact: true })
  await revenue.getByRole('cell', { name: '59.90' }).first().waitFor()
  assert.match(await revenue.getByRole('row').nth(1).innerText(), /EUR\s+1\s+59\.90\s+9\.90\s+50\.00\s+59\.90/)
  await page.getByText('No order followed yet').waitFor()
  await page.getByRole('cell', { name: 'A-2' }).waitFor()
  await w.axe('the orders of a person')
  await w.shots('person-orders')

  await w.open('/analytics?tab=revenue')
  const all = page.getByRole('region', { name: 'Revenue in all' })
  await all.getByRole('cell', { name: '1,200.00' }).first().waitFor()
  assert.match(await all.getByRole('row').nth(1).innerText(), /EUR\s+1\s+59\.90\s+9\.90\s+50\.00/)
  await page.getByRole('region', { name: 'Revenue by day' }).getByRole('row', { name: /EUR/ }).waitFor()
  await w.axe('the revenue')
  await w.shots('analytics-revenue')

  await w.open('/settings/revenue')
  const save = page.getByRole('button', { name: 'Save windows' })
  await page.getByLabel('Hours after a click').fill('48')
  await page.getByLabel('Hours after an open').fill('')
  await until('an empty window cannot be saved', async () => assert.equal(await save.isDisabled(), true))
  await page.getByLabel('Hours after an open').fill('24')
  await save.click()
  await page.getByText('The windows are saved.').waitFor()
  await until('the window is kept', async () => assert.equal((await w.people('GET', '/settings')).revenue_attribution.click_hours, 48))
  await w.axe('the windows of attribution')
  await w.shots('settings-revenue')
})
