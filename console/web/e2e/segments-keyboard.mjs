// Screen 1 without a mouse: a segment is built, saved and explained; then every kind of
// condition is shown, and a slow network does not mix numbers up.
import assert from 'node:assert/strict'
import { offered, run, until } from './lib/run.mjs'
import { shop } from './lib/shop.mjs'

await run(async (w) => {
  const { page } = w
  const { events, people } = shop()
  await w.send(events)
  const press = async (...keys) => {
    for (const k of keys) await page.keyboard.press(k)
  }
  const focused = () => page.evaluate(() => {
    const e = document.activeElement
    const label = e?.getAttribute('aria-label') ?? (e?.id && document.querySelector(`label[for="${e.id}"]`)?.textContent) ?? e?.closest('label')?.textContent ?? ''
    return `${label || e?.textContent}`.trim()
  })
  /** Presses Tab until something of this name has the focus. */
  const tabTo = async (name, key = 'Tab') => {
    const seen = []
    for (let i = 0; i < 80; i++) {
      await press(key)
      const now = await focused()
      if (name instanceof RegExp ? name.test(now) : now === name) return
      seen.push(now.slice(0, 40))
    }
    assert.fail(`no Tab leads to ${name}: ${seen.join(' | ')}`)
  }
  const total = () => page.getByTestId('total').innerText()
  const totalIs = (n) => until(`the total is ${n}`, async () => assert.equal(await total(), String(n)))

  await w.open('/segments')
  await page.getByText('There is no segment yet').waitFor()
  await press('Control+k')
  await page.getByRole('textbox', { name: 'Command' }).waitFor()
  await w.axe('the command palette')
  await page.keyboard.type('new seg')
  await press('Enter')
  await page.getByRole('heading', { name: 'New segment' }).waitFor()

  await tabTo('Name')
  await page.keyboard.type('Bought books')
  await tabTo('Event')
  await page.keyboard.type('item_p')
  await page.getByRole('option', { name: 'item_purchased' }).waitFor()
  await press('ArrowDown', 'Enter')
  await totalIs(people.filter((p) => p.purchases.length > 0).length)
  await tabTo('where …')
  await press('Enter')
  await until('the new filter has the focus', async () => assert.equal(await focused(), 'Property of the event'))
  await page.keyboard.type('category')
  await tabTo('Value to compare with')
  await page.keyboard.type('books')
  const readers = people.filter((p) => p.purchases.length > 1)
  await totalIs(readers.length)
  await tabTo(/^Add a condition$/)
  await press('Enter')
  await page.getByRole('menuitem', { name: 'Profile fields and attributes' }).waitFor()
  await until('the first kind has the focus', async () => assert.equal(await focused(), 'What they did'))
  await press('ArrowDown', 'Enter')
  await until('the new condition has the focus', async () => assert.equal(await focused(), 'Field of the person'))
  await page.keyboard.type('geo.country')
  await tabTo('Value to compare with')
  await page.keyboard.type('US')
  // Another kind, and back: what was filled in is still there.
  await tabTo('Kind of condition 2', 'Shift+Tab')
  await press('ArrowDown')
  await page.getByRole('group', { name: 'Condition 2: Consent to a channel' }).waitFor()
  assert.equal(await focused(), 'Kind of condition 2')
  await press('ArrowUp')
  await page.getByRole('group', { name: 'Condition 2: Profile fields and attributes' }).waitFor()
  const both = readers.filter((p) => p.country === 'US')
  await totalIs(both.length)

  await tabTo('Why is somebody in it, or not?')
  await page.keyboard.type(both[0].email)
  await offered(page, both[0].email)
  await press('ArrowDown', 'Enter')
  await page.getByRole('dialog').getByText('In the segment', { exact: true }).waitFor()
  await press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'hidden' })
  await tabTo('Save the segment', 'Shift+Tab')
  await press('Enter')
  await page.getByRole('dialog').getByText(`${both.length} people are in it now`).waitFor()
  await until('the button that saves has the focus', async () => assert.equal(await focused(), 'Save'))
  await press('Enter')
  await page.getByRole('heading', { name: 'Bought books', level: 1 }).waitFor()

  // Every kind of condition is shown as a sentence, and the form writes what it read.
  const list = await w.people('POST', '/lists', { name: 'Newsletter' })
  const [saved] = await w.people('GET', '/segments')
  const definition = {
    match: 'any',
    conditions: [
      { kind: 'activity', event: 'item_purchased', did: false, window: { last_days: 7.5 }, where: [{ property: 'order.currency', op: 'in', value: ['EUR', 'USD'] }, { property: 'value', op: 'between', value: [10, 90] }, { property: 'gift', op: 'not_exists' }], aggregate: { fn: 'avg', property: 'value', op: '>', value: 12345678901234567.123456 } },
      { kind: 'attribute', field: 'created_at', op: 'in_last_days', value: 3 },
      { kind: 'attribute', field: 'status.sms', op: '=', value: 'Subscribed' },
      { kind: 'attribute', field: 'subscribed', op: '=', value: true },
      { kind: 'attribute', field: 'event_count', op: '>=', value: 5 },
      { kind: 'attribute', field: 'attributes.since', op: 'before', value: '2026-01-31' },
      { kind: 'consent', channel: 'email', status: 'subscribed', since: '2026-01-01' },
      { match: 'all', conditions: [{ kind: 'list', list_id: list._id, member: false }, { match: 'any', conditions: [{ kind: 'segment', segment_id: saved._id }, { kind: 'activity', event: 'page_viewed', count: { op: 'between', value: [2, 5] } }] }] },
    ],
  }
  const text = JSON.stringify(definition).replace('12345678901234568', '12345678901234567.123456')
  await page.goto(`${w.url}/console/segments/new?definition=${encodeURIComponent(JSON.stringify(text))}`)
  const expected = await w.people('POST', '/segments/preview', { definition })
  await totalIs(expected.count)
  assert.equal(await page.getByTestId('condition-count').count(), expected.parts.length)
  for (const value of ['12345678901234567.123456', '7.5', 'order.currency']) await page.locator(`input[value="${value}"]`).first().waitFor()
  await page.getByRole('option', { name: 'Newsletter' }).first().waitFor({ state: 'attached' })
  await w.axe('every kind of condition')
  await w.shots('kinds')
  await page.getByText('JSON', { exact: true }).click()
  await page.locator('.cm-content').waitFor()
  const shown = await page.locator('.cm-content').evaluate((e) => (e.cmTile?.view ?? e.cmView.view).state.doc.toString())
  assert.equal(shown.replace(/\s/g, ''), text.replace(/\s/g, ''))
  await page.getByText('Form', { exact: true }).click()

  // On a slow network the numbers are those of the newest definition: older answers are given up.
  await page.goto(`${w.url}/console/segments/new`)
  await page.getByRole('combobox', { name: 'Event' }).fill('item_purchased')
  await totalIs(people.filter((p) => p.purchases.length >= 1).length)
  let asked = 0
  let cancelled = 0
  page.on('requestfailed', (r) => r.url().endsWith('/segments/preview') && cancelled++)
  w.forgive(/net::ERR_/)
  await page.route('**/segments/preview', async (route) => {
    // The first question is the slowest.
    const wait = 1200 - 300 * Math.min(asked++, 3)
    await new Promise((go) => setTimeout(go, wait))
    await route.continue().catch(() => {})
  })
  const times = page.getByLabel('Number to compare with')
  for (const n of ['4', '3', '2']) {
    await times.fill(n)
    await until('the question is on its way', () => asked >= 5 - Number(n))
  }
  await totalIs(people.filter((p) => p.purchases.length >= 2).length)
  await until('two older questions were given up', () => cancelled === 2)
  await page.unroute('**/segments/preview')
})
