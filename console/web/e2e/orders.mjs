// Orders and revenue: the ready flow for carts goes live as it is, a person shows orders and the
// cart, analytics show what came in by day, a flow what belongs to its messages, and the windows of attribution are saved.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
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

  // An order after a look at a flow's message is the flow's.
  const made = await w.people('POST', '/flows', { name: 'Thanks', trigger: { type: 'event', event: 'visited' }, steps: [{ id: 'thanks', type: 'in_app', title: 'Welcome' }] })
  await w.people('POST', `/flows/${made._id}/publish`)
  const { secret, issuer } = await w.people('POST', '/in-app/secret', {})
  const part = (v) => Buffer.from(JSON.stringify(v)).toString('base64url')
  const signed = `${part({ alg: 'HS256' })}.${part({ iss: issuer, sub: user.email, sub_type: 'email', exp: Math.floor(Date.now() / 1000) + 3600 })}`
  const headers = { Authorization: `Bearer ${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}` }
  const inbox = async () => (await (await fetch(`${w.url}/in-app/inbox`, { headers })).json()).messages
  await w.send([{ event_type: 'visited', user }])
  await until('the message is in the inbox', async () => assert.equal((await inbox()).length, 1))
  assert.equal((await fetch(`${w.url}/in-app/inbox/${(await inbox())[0].id}/seen`, { method: 'POST', headers })).status, 200)
  await w.send([{ event_type: 'order_placed', user, properties: { order_id: 'A-3', total: 20, currency: 'EUR' } }])
  await w.open(`/flows/${made._id}`)
  const brought = page.getByRole('region', { name: 'Revenue', exact: true })
  await brought.getByRole('cell', { name: '20.00' }).first().waitFor()
  assert.match(await brought.getByRole('table', { name: 'Revenue of the flow' }).getByRole('row').nth(1).innerText(), /EUR\s+1\s+20\.00\s+0\.00\s+20\.00/)
  assert.match(await brought.getByRole('table', { name: 'Revenue by step' }).getByRole('row').nth(1).innerText(), /thanks \(in-app\)\s+EUR\s+1\s+20\.00/)
  await w.axe('the revenue of a flow')
  await w.shots('flow-revenue')

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
