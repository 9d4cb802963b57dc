// Lists: made, filled, renamed, used, emptied and deleted.
import assert from 'node:assert/strict'
import { offered, run, until } from './lib/run.mjs'
import { shop } from './lib/shop.mjs'

await run(async (w) => {
  const { page } = w
  const dialog = page.getByRole('dialog')
  const found = page.getByTestId('found')
  await w.open('/lists')
  await page.getByText('There is no list yet').waitFor()
  await w.axe('no lists')
  const { events, people } = shop()
  await w.send(events)
  await w.send([{ event_type: 'signed_up', user: { external_id: 'no-mail', first_name: 'Nomail' } }])

  // By keyboard alone: a list is made, and somebody who is known is put on it.
  await page.getByRole('button', { name: 'New list' }).first().focus()
  await page.keyboard.press('Enter')
  await until('the name has the focus', () => dialog.getByRole('textbox', { name: 'Name' }).evaluate((e) => e === document.activeElement))
  await w.axe('the form of a new list')
  await page.keyboard.type('Regulars')
  await page.keyboard.press('Tab')
  await page.keyboard.type('People of the shop')
  for (let i = 0; i < 3; i++) await page.keyboard.press('Tab') // the preference page, Cancel, Create
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Regulars', level: 1 }).waitFor()
  await page.getByText('Nobody is on this list').waitFor()
  await w.axe('an empty list')
  const [{ _id: id }] = await w.people('GET', '/lists')
  const countIs = (n) => until(`${n} are on it`, async () => assert.equal(await page.getByTestId('count').innerText(), String(n)))
  await page.getByRole('button', { name: 'Add people' }).first().focus()
  await page.keyboard.press('Enter')
  const known = dialog.getByRole('combobox', { name: 'Find a person' })
  await known.focus()
  await page.keyboard.type(people[3].email)
  await offered(page, people[3].email)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await countIs(1)

  // Who has no e-mail is told so.
  await known.fill('no-mail')
  await page.getByRole('option', { name: 'Nomail' }).click()
  await page.getByText('Lists hold people by e-mail, and Nomail has none.').waitFor()

  // Addresses as they are pasted: known people, somebody new, and a slip.
  const pasted = dialog.getByRole('textbox', { name: 'E-mail addresses' })
  await pasted.fill(`${people[4].email}, ${people[5].email}\nnew@example.com; nothing`)
  await dialog.getByText('No e-mail: nothing').waitFor()
  assert.ok(await dialog.getByRole('button', { name: 'Add 3' }).isDisabled())
  await w.axe('addresses with a slip')
  await w.shots('list-add')
  await pasted.fill(`${people[4].email}, ${people[5].email}\nnew@example.com`)
  await dialog.getByRole('button', { name: 'Add 3' }).click()
  await dialog.waitFor({ state: 'hidden' })
  await countIs(4)
  await found.filter({ hasText: '4 people' }).waitFor()
  await page.getByRole('link', { name: `${people[4].first_name} ${people[4].last_name}` }).waitFor()
  await w.axe('a list with people')
  await w.shots('list')

  // Off it after a question.
  await page.getByRole('button', { name: `Take ${people[4].first_name} off the list` }).click()
  await w.axe('the question before somebody is taken off')
  await dialog.getByRole('button', { name: 'Take off' }).click()
  await countIs(3)
  assert.ok(!(await w.people('GET', `/lists/${id}/members`)).members.includes((await w.people('GET', `/profiles?email=${people[4].email}`)).profile_id))

  // Renamed.
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Rename' }).click()
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Insiders')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: 'Insiders', level: 1 }).waitFor()

  // Where it is used, each a link; then it cannot be deleted.
  const segment = await w.people('POST', '/segments', { name: 'On the list', definition: { kind: 'list', list_id: id } })
  const flow = await w.people('POST', '/flows', { name: 'Welcome', trigger: { type: 'list_joined', list_id: id }, reentry: 'once', steps: [{ id: 'wait', type: 'wait', seconds: 3600, next: null }] })
  await page.getByRole('tab', { name: 'Used in' }).click()
  await page.getByRole('link', { name: 'On the list' }).waitFor()
  await w.axe('where a list is used')
  await page.getByRole('link', { name: 'Welcome' }).click()
  await page.getByRole('textbox', { name: 'Name of the flow' }).waitFor()
  await page.goBack()
  await page.getByRole('link', { name: 'On the list' }).click()
  await page.getByRole('heading', { name: 'On the list', level: 1 }).waitFor()
  await page.getByRole('navigation').getByRole('link', { name: 'Lists' }).click()
  await page.getByRole('cell', { name: 'Insiders People' }).waitFor()
  await w.axe('the lists')
  await w.shots('lists')
  await page.getByRole('button', { name: 'Actions of Insiders' }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByText('It cannot be deleted while it is used in segment On the list, flow Welcome.').waitFor()
  await w.people('DELETE', `/segments/${segment._id}`)
  await w.people('DELETE', `/flows/${flow._id}`)
  await page.getByRole('button', { name: 'Actions of Insiders' }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await dialog.getByText('The 3 people on it stay').waitFor()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('There is no list yet').waitFor()
  assert.deepEqual(await w.people('GET', '/lists'), [])
  w.forgive(/404/)
  await page.goto(`${w.url}/console/lists/${id}`)
  await page.getByText('there is no list with this id').waitFor()

  const other = await w.people('POST', '/lists', { name: 'A list whose name is rather long for the screen of a phone', description: '' })
  await w.people('POST', `/lists/${other._id}/contacts`, { email: people[1].email })
  await page.setViewportSize({ width: 390, height: 844 })
  for (const path of ['/lists', `/lists/${other._id}`]) {
    await page.goto(`${w.url}/console${path}`)
    await page.getByText('A list whose name').first().waitFor()
    await until('it fits a phone', () => page.evaluate(() => document.documentElement.scrollWidth <= 390))
    await page.evaluate(() => document.documentElement.setAttribute('data-mantine-color-scheme', 'dark'))
    await w.axe(`dark ${path} on a phone`)
  }
})
