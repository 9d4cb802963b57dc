// Screen 1: the list of segments and the builder.
import assert from 'node:assert/strict'
import { offered, run, until } from './lib/run.mjs'
import { shop } from './lib/shop.mjs'

const number = (text) => Number(text.replaceAll(',', ''))

await run(async (w) => {
  const { page } = w
  const total = async () => number(await page.getByTestId('total').innerText())
  const totalIs = (n) => until(`the total is ${n}`, async () => assert.equal(await total(), n))

  // The link of the first start signs in, once, and is not left in the address.
  await page.goto(`${w.url}/console#sign-in=${w.link}`)
  const toSegments = page.getByRole('navigation').getByRole('link', { name: 'Segments' })
  await toSegments.waitFor()
  assert.ok(!page.url().includes('sign-in'), page.url())
  await page.goto(`${w.url}/console/segments`)
  await page.getByRole('heading', { name: 'Segments', level: 1 }).waitFor()
  await page.getByText('There is no segment yet').waitFor()
  await w.axe('the empty list of segments')

  const { events, people } = shop()
  await w.send(events)

  // Three nested conditions: bought twice or more in 30 days, and (from Germany, or on a plan).
  await page.getByRole('link', { name: 'New segment' }).first().click()
  const first = page.getByRole('group', { name: 'Condition 1: What they did' })
  await first.getByLabel('Event').fill('item_bougth')
  // One hint at a time: the server's knows what may be meant.
  await first.getByText(/there has never been an event of the type/i).waitFor()
  await until('one hint is shown', async () => assert.equal(await page.getByTestId('unseen').count(), 0))
  await first.getByLabel('Event').fill('item')
  // What is offered says what its numbers are of.
  const bought = events.filter((e) => e.event_type === 'item_purchased').length
  await page.getByRole('option', { name: `item_purchased ${bought} events` }).click()
  await totalIs(people.filter((p) => p.purchases.length >= 1).length)
  // What cannot be meant is said in the form's words, and its input is marked.
  const times = first.getByLabel('Number to compare with')
  await times.fill('-2')
  await first.getByTestId('fault').getByText('The number must not be negative.').waitFor()
  await until('the number is marked as invalid', async () => assert.equal(await times.getAttribute('aria-invalid'), 'true'))
  assert.equal(await page.locator(`#${await times.getAttribute('aria-describedby')}`).innerText(), 'The number must not be negative.')
  await w.axe('a condition with a fault')
  // So is what only the server finds; and a value that nothing has is marked.
  w.forgive(/400 \(Bad Request\)/)
  await times.fill('99999999999999999999')
  await first.getByTestId('fault').filter({ hasText: /^The number of times must be between/ }).waitFor()
  assert.equal(await times.getAttribute('aria-invalid'), 'true')
  await times.fill('2')
  await first.getByRole('button', { name: 'where …' }).click()
  await first.getByLabel('Property of the event').click()
  await page.getByRole('option', { name: 'value in 100 % of events' }).waitFor()
  await first.getByLabel('Property of the event').fill('category')
  await first.getByLabel('Value to compare with').click()
  await page.getByRole('option', { name: /^shoes \d+(\.\d)? % of values$/ }).waitFor()
  await first.getByLabel('Value to compare with').fill('Shoes')
  await first.getByTestId('unseen-value').filter({ hasText: 'has “Shoes” there yet. Did you mean “shoes”?' }).waitFor()
  await w.shots('builder-unseen')
  await first.getByLabel('Value to compare with').fill('shoes')
  await first.getByTestId('unseen-value').waitFor({ state: 'detached' })
  await first.getByRole('button', { name: 'Remove the filter on category' }).click()
  await totalIs(people.filter((p) => p.purchases.length >= 2).length)
  await first.getByLabel('Time that counts').selectOption('in the last')
  await first.getByLabel('Number of days').fill('5')
  const since = Date.now() - 5 * 86_400_000
  await totalIs(people.filter((p) => p.purchases.filter((x) => x.at > since).length >= 2).length)
  await first.getByLabel('Number of days').fill('12')
  const lately = (p) => p.purchases.filter((x) => x.at > Date.now() - 12 * 86_400_000).length >= 2
  await totalIs(people.filter(lately).length)

  await page.getByRole('button', { name: 'Add a condition' }).last().click()
  await page.getByRole('menuitem', { name: 'Group of conditions' }).click()
  const group = page.getByRole('group', { name: 'Condition 2: Group of conditions' })
  // The first condition of the group is changed to another kind in its place.
  await group.getByLabel('Kind of condition 2.1').selectOption('Profile fields and attributes')
  const country = page.getByRole('group', { name: 'Condition 2.1: Profile fields and attributes' })
  await country.getByLabel('Field of the person').fill('geo.country')
  await country.getByLabel('Value to compare with').fill('DE')
  await group.getByRole('button', { name: 'Add a condition' }).click()
  await page.getByRole('menuitem', { name: 'Profile fields and attributes' }).click()
  const second = page.getByRole('group', { name: 'Condition 2.2: Profile fields and attributes' })
  await second.getByLabel('Field of the person').fill('attributes.plan')
  await second.getByLabel('Comparison').selectOption('is known')
  const inIt = people.filter((p) => lately(p) && (p.country === 'DE' || p.plan))
  await totalIs(inIt.length)
  assert.ok(inIt.length > 3 && inIt.length < people.length / 2, `${inIt.length} is no test`)

  // Each condition's own count, and the count without it.
  const counts = (await page.getByTestId('condition-count').allInnerTexts()).map((t) => t.split(/\s+without: |\n/).map(number))
  const either = people.filter((p) => p.country === 'DE' || p.plan).length
  assert.deepEqual(counts.map((c) => c[0]), [people.filter(lately).length, either, people.filter((p) => p.country === 'DE').length, people.filter((p) => p.plan).length])
  assert.equal(counts[0].at(-1), either)
  await w.axe('the builder')
  await page.mouse.move(700, 880) // away from what it pressed
  await w.shots('builder')

  // The form and the JSON say the same, and the API counts the same.
  await page.getByText('JSON', { exact: true }).click()
  const editor = page.getByRole('textbox', { name: 'Definition as JSON' })
  await editor.waitFor()
  const definition = JSON.parse(await page.locator('.cm-content').evaluate((e) => e.cmTile?.view.state.doc.toString() ?? e.cmView.view.state.doc.toString()))
  assert.deepEqual(definition, {
    match: 'all',
    conditions: [
      { kind: 'activity', event: 'item_purchased', window: { last_days: 12 }, count: { op: '>=', value: 2 } },
      { match: 'any', conditions: [{ kind: 'attribute', field: 'geo.country', op: '=', value: 'DE' }, { kind: 'attribute', field: 'attributes.plan', op: 'exists' }] },
    ],
  })
  assert.equal((await w.people('POST', '/segments/preview', { definition })).count, inIt.length)
  await w.axe('the builder with JSON')
  await editor.click()
  await page.keyboard.press('Control+End')
  await page.keyboard.type('x')
  await page.getByRole('alert').filter({ hasText: 'behind the end' }).waitFor()
  await page.keyboard.press('Backspace')
  await page.getByText('Form', { exact: true }).click()
  await first.waitFor()

  // Why is somebody in it?
  await page.getByRole('region', { name: 'Preview' }).getByRole('button').first().click()
  const why = page.getByRole('dialog')
  await why.getByText('In the segment', { exact: true }).waitFor()
  await why.getByText(/matching events since/).waitFor()
  await w.axe('an explanation')
  await w.shots('explanation')
  await page.keyboard.press('Escape')
  await why.waitFor({ state: 'hidden' })

  // And why is somebody not in it? Found by the keyboard alone.
  const out = people.find((p) => p.country === 'FR' && !lately(p))
  await page.getByRole('combobox', { name: 'Why is somebody in it, or not?' }).focus()
  await page.keyboard.type(out.email)
  await offered(page, out.email)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await why.getByText('Not in the segment', { exact: true }).waitFor()
  await why.getByText(`Why ${out.first_name} ${out.last_name}?`).waitFor()
  await why.getByText('It is “FR”.').waitFor()
  await page.keyboard.press('Escape')
  await why.waitFor({ state: 'hidden' })

  // A server that goes away and comes back: what was typed stays, and the count returns.
  w.forgive(/Failed to load resource|ERR_|503/)
  await w.stop()
  await first.getByLabel('Number to compare with').fill('1')
  await page.getByText('The server does not answer. The page reconnects by itself').waitFor()
  await w.start()
  await totalIs(people.filter((p) => p.purchases.some((x) => x.at > Date.now() - 12 * 86_400_000) && (p.country === 'DE' || p.plan)).length)
  await page.getByText('The server does not answer. The page reconnects by itself').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Undo' }).click()
  await totalIs(inIt.length)

  // A page that is loaded anew in between has what was typed.
  await until('the definition is in the address', () => decodeURIComponent(page.url()).replaceAll('\\', '').includes('"value":2'))
  await page.reload()
  await totalIs(inIt.length)

  // Saving says what will happen.
  await page.getByRole('button', { name: 'Save the segment' }).click()
  await page.getByText('Name the segment.').waitFor()
  await page.getByRole('textbox', { name: 'Name' }).fill('Loyal')
  await page.getByRole('button', { name: 'Save the segment' }).click()
  await page.getByRole('dialog').getByText(`${inIt.length} people are in it now`).waitFor()
  await w.axe('the question before saving')
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: 'Loyal', level: 1 }).waitFor()
  const [saved] = await w.people('GET', '/segments')
  assert.equal(saved.count, inIt.length)
  // It leads to the page of the segment; from there the way goes back to the builder.
  await until('the page of the segment', () => page.url().endsWith(`/console/segments/${saved._id}`))
  await page.getByTestId('count').filter({ hasText: new RegExp(`^${inIt.length}$`) }).waitFor()
  await page.getByRole('link', { name: 'Edit', exact: true }).click()
  // Nothing differs from what is saved: there is nothing to save, and it says so.
  const save = page.getByRole('button', { name: 'Save', exact: true })
  await until('nothing is to be saved', () => save.isDisabled())
  await page.getByText('saved, nothing is changed').waitFor()
  await w.axe('a saved segment in the builder')
  await first.getByLabel('Number to compare with').fill('7')
  await until('a change can be saved', () => save.isEnabled())
  await page.getByRole('button', { name: 'Undo' }).click()
  await until('the change is taken back', () => save.isDisabled())
  // The address may have had the change by then; it follows a moment later.
  await until('the address is without the change', () => !decodeURIComponent(page.url()).replaceAll('\\', '').includes('"value":7'))

  // Somebody enters after an event, and the list shows it.
  const outside = people.find((p) => p.country === 'DE' && !lately(p))
  await w.send([1, 2].map((n) => ({ event_type: 'item_purchased', idempotency_key: `late-${n}`, user: { email: outside.email }, properties: { value: n } })))
  // What was typed is kept in the address a moment later: not where the way leads to another
  // page by then, which takes its time to load here.
  await page.route(/screen-templates/, async (r) => {
    await new Promise((go) => setTimeout(go, 1500))
    await r.continue()
  })
  await page.reload()
  await first.getByLabel('Number to compare with').fill('7')
  await until('it is in the address', () => decodeURIComponent(page.url()).replaceAll('\\', '').includes('"value":7'))
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByRole('navigation').getByRole('link', { name: 'Templates' }).click()
  await page.getByRole('heading', { name: 'Templates', level: 1 }).waitFor()
  await page.unroute(/screen-templates/)
  await page.getByRole('navigation').getByRole('link', { name: 'Segments' }).click()
  const row = page.getByRole('row').filter({ hasText: 'Loyal' })
  await row.waitFor()
  await page.reload()
  await row.filter({ hasText: String(inIt.length + 1) }).waitFor()
  await row.getByText(/did item_purchased at least 2 times in the last 12 days/).waitFor()
  await w.axe('the list of segments')
  await w.shots('segments')

  // Editing says who enters and who leaves.
  await row.getByRole('link', { name: 'Loyal' }).click()
  await page.getByRole('link', { name: 'Edit', exact: true }).click()
  await first.getByLabel('Number to compare with').fill('3')
  const fewer = people.filter((p) => p.purchases.filter((x) => x.at > Date.now() - 12 * 86_400_000).length >= 3 && (p.country === 'DE' || p.plan)).length
  await page.getByTestId('changes').filter({ hasText: new RegExp(`^0 would enter, ${inIt.length + 1 - fewer} would leave`) }).waitFor()

  // The keyboard alone: a condition is moved, added and removed.
  await page.getByRole('button', { name: 'Actions of condition 1', exact: true }).focus()
  await page.keyboard.press('Alt+ArrowDown')
  await page.getByRole('group', { name: 'Condition 1.1: What they did' }).waitFor()
  await page.keyboard.press('Alt+ArrowUp')
  await first.waitFor()

  // On a phone nothing is wider than the screen.
  await page.setViewportSize({ width: 390, height: 844 })
  await until('the page fits a phone', () => page.evaluate(() => document.documentElement.scrollWidth <= 390))
  await w.axe('the builder on a phone')
  await page.evaluate(() => document.documentElement.setAttribute('data-mantine-color-scheme', 'dark'))
  await w.axe('the dark builder on a phone')
})
