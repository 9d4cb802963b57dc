// Screens 6 and 3: people, and one person.
import assert from 'node:assert/strict'
import { run, until } from './lib/run.mjs'
import { shop } from './lib/shop.mjs'

await run(async (w) => {
  const { page } = w
  const found = page.getByTestId('found')
  const foundIs = (n) => until(`${n} are found`, async () => assert.equal(await found.innerText(), `${n} ${n === 1 ? 'person' : 'people'}`))

  await w.open('/people')
  await page.getByText('There is nobody yet').waitFor()
  await w.axe('the empty list of people')

  const { events, people } = shop()
  await w.send(events)
  const buyers = await w.people('POST', '/segments', { name: 'Buyers', definition: { kind: 'activity', event: 'item_purchased' } })
  const german = await w.people('POST', '/segments', { name: 'Germans', definition: { kind: 'attribute', field: 'geo.country', op: '=', value: 'DE' } })
  const list = await w.people('POST', '/lists', { name: 'Regulars', description: '' })
  await w.people('POST', `/lists/${list._id}/contacts`, { email: people[1].email })

  // Search by the beginning of a name, an e-mail, an id; filters; all of it in the address.
  await page.reload()
  await foundIs(60)
  const search = page.getByRole('search', { name: 'People' })
  await search.getByLabel('Search').fill('ada')
  await foundIs(people.filter((p) => p.first_name === 'Ada').length)
  await search.getByLabel('Segment').selectOption('Buyers')
  await foundIs(people.filter((p) => p.first_name === 'Ada' && p.purchases.length > 0).length)
  assert.match(page.url(), /q=ada/)
  await page.reload()
  await foundIs(people.filter((p) => p.first_name === 'Ada' && p.purchases.length > 0).length)
  await search.getByLabel('Search').fill('c-1007')
  await foundIs(1)
  await search.getByLabel('Search').fill('nobody-has-this')
  await page.getByText('No one found').waitFor()
  await w.axe('nobody found')
  await page.getByRole('button', { name: 'Clear all filters' }).click()
  await foundIs(60)
  await search.getByLabel('List').selectOption('Regulars')
  await foundIs(1)
  await search.getByLabel('List').selectOption('')
  await foundIs(60)

  // Columns are chosen, and stay in the address.
  await page.getByRole('button', { name: 'Columns' }).click()
  await page.getByRole('checkbox', { name: 'Phone' }).click()
  await page.getByRole('columnheader', { name: 'Phone' }).waitFor()
  await w.axe('the choice of columns')
  await page.keyboard.press('Escape')
  assert.match(page.url(), /columns/)
  await page.getByRole('checkbox', { name: 'Phone' }).waitFor({ state: 'hidden' })
  await w.axe('the list of people')
  await w.shots('people')
  await page.setViewportSize({ width: 390, height: 844 })
  await until('the list fits a phone', () => page.evaluate(() => document.documentElement.scrollWidth <= 390))
  await w.axe('people on a phone')
  await page.setViewportSize({ width: 1440, height: 900 })

  // Somebody is added by hand.
  await page.getByRole('button', { name: 'Add a person' }).click()
  const form = page.getByRole('dialog')
  assert.ok(await form.getByRole('button', { name: 'Add', exact: true }).isDisabled())
  await form.getByLabel('E-mail').fill('zoe@example.com')
  await form.getByLabel('First name').fill('Zoe')
  await w.axe('the form of a new person')
  await form.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByRole('heading', { name: 'Zoe', level: 1 }).waitFor()

  // A person: 4 purchases, in both segments.
  const i = people.findIndex((p, n) => n > 10 && p.purchases.length === 4 && p.country === 'DE')
  const one = people[i]
  const profile = await w.people('GET', `/profiles?email=${encodeURIComponent(one.email)}`)
  await page.goto(`${w.url}/console/people?q=${one.email}`)
  await page.getByRole('link', { name: `${one.first_name} ${one.last_name}` }).click()
  await page.getByRole('heading', { name: `${one.first_name} ${one.last_name}`, level: 1 }).waitFor()
  const entries = page.getByTestId('entry')
  await entries.filter({ hasText: 'Entered Buyers' }).getByText('when the segment was created or changed').waitFor()
  assert.equal(await entries.filter({ hasText: 'item_purchased' }).count(), 4)
  await entries.filter({ hasText: 'value: 80' }).getByRole('button').click()
  await page.getByRole('textbox', { name: 'Properties of item_purchased' }).waitFor()
  await w.axe('a timeline')
  await w.shots('person')

  // What happens now is there at once.
  await w.send([{ event_type: 'item_returned', user: { email: one.email }, properties: { why: 'too small' } }])
  await entries.filter({ hasText: 'why: too small' }).waitFor()
  await page.getByRole('group', { name: 'Kinds of entries' }).getByText('Segments', { exact: true }).click()
  await entries.filter({ hasText: 'item_purchased' }).first().waitFor({ state: 'detached' })
  await until('only segments are left', async () => (await entries.count()) === 2)
  assert.match(page.url(), /kinds/)

  // Why, and why not.
  await page.getByRole('tab', { name: 'Segments' }).click()
  await page.getByRole('button', { name: 'Why in Buyers?' }).click()
  await page.getByRole('region', { name: 'Reasons' }).getByText('4 matching events').waitFor()
  await w.axe('why somebody is in a segment')
  await w.shots('person-why')
  assert.match(page.url(), new RegExp(`why=${buyers._id}`))

  // Consents and blocks, each with its question.
  const said = (title) => page.getByRole('dialog').filter({ hasText: title })
  await page.getByRole('tab', { name: 'Consent' }).click()
  await page.getByRole('button', { name: 'Subscribe to e-mail' }).click()
  await w.axe('the question before subscribing')
  await said('Subscribe').getByRole('button', { name: 'They consented: subscribe' }).click()
  await page.getByTestId('consent-entry').filter({ hasText: 'Subscribed to e-mail' }).waitFor()
  await page.getByRole('button', { name: 'Block SMS' }).click()
  await said('Block SMS').getByRole('button', { name: 'Cancel' }).click()
  assert.deepEqual((await w.people('GET', `/profiles/${profile.profile_id}`)).suppressions, {})
  await page.getByRole('button', { name: 'Block SMS' }).click()
  await said('Block SMS').getByRole('button', { name: 'Block', exact: true }).click()
  await page.getByRole('button', { name: 'Lift the block of SMS' }).waitFor()
  await page.getByRole('button', { name: 'Unsubscribe from e-mail' }).click()
  await said('Unsubscribe').getByRole('button', { name: 'Unsubscribe', exact: true }).click()
  await page.getByRole('button', { name: 'Subscribe to e-mail' }).waitFor()
  const now = await w.people('GET', `/profiles/${profile.profile_id}`)
  assert.deepEqual([now.suppressions, now.consent.email.status], [{ sms: 'suppressed' }, 'unsubscribed'])
  await w.axe('consents')
  await w.shots('person-consent')

  // Lists and attributes.
  await page.getByRole('button', { name: 'Add to a list' }).click()
  await page.getByRole('menuitem', { name: 'Regulars' }).click()
  await page.getByRole('button', { name: 'Take off Regulars' }).waitFor()
  await page.getByRole('tab', { name: 'Profile' }).click()
  const attributes = page.getByRole('region', { name: 'Attributes' })
  await attributes.getByLabel('Name').fill('seats')
  await attributes.getByLabel('Value: text, number, or JSON').fill('3')
  await attributes.getByRole('button', { name: 'Add' }).click()
  await attributes.getByRole('button', { name: 'Change seats' }).waitFor()
  assert.equal((await w.people('GET', `/profiles/${profile.profile_id}`)).attributes.seats, 3)
  await w.axe('identifiers and attributes')

  // Two profiles turn out to be one person; an identifier belongs to somebody else.
  await w.send([{ event_type: 'app_opened', user: { phone: '+4915112345678' } }])
  const other = await w.people('GET', '/profiles?phone=%2B4915112345678')
  await w.send([{ event_type: 'app_opened', user: { phone: '+4915112345678', email: one.email } }])
  await page.getByTestId('merged').filter({ hasText: other.profile_id }).waitFor()
  await w.send([{ event_type: 'app_opened', user: { email: one.email, external_id: `c-${1000 + (i === 20 ? 21 : 20)}` } }])
  await page.getByTestId('conflict').waitFor()
  await w.axe('merges and conflicts')
  await page.evaluate(() => document.documentElement.setAttribute('data-mantine-color-scheme', 'dark'))
  await w.axe('merges and conflicts in the dark')
  await page.evaluate(() => document.documentElement.setAttribute('data-mantine-color-scheme', 'light'))
  await w.shots('person-profile')
  await page.goto(`${w.url}/console/people/${other.profile_id}`)
  await page.getByText(`The profile ${other.profile_id} became part of this one.`).waitFor()

  // In a flow, at which step and until when.
  const flow = await w.people('POST', '/flows', { name: 'Thanks', trigger: { type: 'event', event: 'thanked' }, steps: [{ id: 'pause', type: 'wait', seconds: 7 * 86_400 }] })
  await w.people('POST', `/flows/${flow._id}/publish`)
  await until('the flow is live', async () => (await w.people('GET', `/flows/${flow._id}`)).status === 'live')
  await w.send([{ event_type: 'thanked', user: { email: one.email } }])
  await page.goto(`${w.url}/console/people/${profile.profile_id}?tab=flows`)
  await page.getByTestId('enrolment').filter({ hasText: /At the step pause since .*, until / }).waitFor()
  await w.axe('flows of a person')
  await w.shots('person-flows')

  // What the person's own export holds.
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Export' }).click()])
  assert.equal(file.suggestedFilename(), `${one.email}.json`)

  // On a phone nothing is wider than the screen, also in the dark.
  await page.setViewportSize({ width: 390, height: 844 })
  for (const tab of ['Timeline', 'Segments', 'Flows', 'Profile', 'Consent']) {
    await page.getByRole('tab', { name: tab }).click()
    await until(`${tab} fits a phone`, () => page.evaluate(() => document.documentElement.scrollWidth <= 390))
  }
  await page.evaluate(() => document.documentElement.setAttribute('data-mantine-color-scheme', 'dark'))
  await w.axe('a dark person on a phone')
  await page.setViewportSize({ width: 1440, height: 900 })

  // Erasure asks, and then it is for good.
  await page.getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('menuitem', { name: 'Erase' }).click()
  await page.getByRole('dialog').getByText('There is no undo').waitFor()
  await w.axe('the question before erasing')
  await page.getByRole('dialog').getByRole('button', { name: 'Erase for good' }).click()
  await page.getByRole('heading', { name: 'People', level: 1 }).waitFor()
  w.forgive(/404/)
  await until('the person is gone', async () => (await w.people('GET', `/profiles/search?q=${one.email}`)).length === 0)
  assert.ok(german._id)

  // Who may see no people is told what is missing.
  await page.goto(`${w.url}/console/people/${profile.profile_id}`)
  await page.getByText('there is no profile with this id').waitFor()
})
