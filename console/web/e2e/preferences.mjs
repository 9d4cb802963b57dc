// The preference page: its words and topics are chosen in the settings, a person uses it, and
// the log of consents has what was said there.
import assert from 'node:assert/strict'
import { run, until } from './lib/run.mjs'

await run(async (w) => {
  const { page, context } = w
  const dialog = page.getByRole('dialog')
  const news = await w.people('POST', '/lists', { name: 'L1 news', description: 'Only for the team' })
  await w.people('POST', '/lists', { name: 'VIPs', description: '' })
  const ann = await w.people('POST', `/lists/${news._id}/contacts`, { email: 'ann@example.com', first_name: 'Ann' })
  await w.people('POST', `/profiles/${ann._id}/consent`, { channel: 'email', status: 'subscribed' })

  // The words, and a topic: what people read is apart from what the team reads.
  await w.open('/settings/preferences')
  await page.getByRole('textbox', { name: 'Title' }).fill('Your choices')
  await page.getByRole('textbox', { name: 'Text above the choices' }).fill('What may we write to you about?')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('The page is saved.').waitFor()
  await page.getByRole('button', { name: 'Change what people see of L1 news' }).click()
  await dialog.getByRole('switch', { name: 'Show it on the preference page' }).check({ force: true })
  const save = dialog.getByRole('button', { name: 'Save' })
  assert.equal(await save.isEnabled(), false, 'people must have a name to read')
  await dialog.getByRole('textbox', { name: 'Name that people read' }).fill('Newsletter')
  await dialog.getByRole('textbox', { name: 'Description that people read' }).fill('Each Friday.')
  await w.axe('the form of a topic')
  await save.click()
  await page.getByRole('cell', { name: 'Newsletter Each Friday.' }).waitFor()
  await page.getByText('Not on the page').waitFor()
  await w.axe('the settings of the preference page')
  await w.shots('preferences-settings')

  // The page as the person sees it, without scripts.
  const link = page.getByRole('link', { name: 'Open the page' })
  await link.waitFor()
  const plain = await w.browser.newContext({ javaScriptEnabled: false, viewport: { width: 390, height: 844 } })
  const theirs = await plain.newPage()
  await theirs.goto(await link.getAttribute('href'))
  await theirs.getByRole('heading', { name: 'Your choices' }).waitFor()
  await theirs.getByText('What may we write to you about?').waitFor()
  assert.equal(await theirs.getByText('VIPs').count(), 0)
  const topic = theirs.getByRole('checkbox', { name: /Newsletter/ })
  assert.equal(await topic.isChecked(), true)
  await topic.uncheck()
  await theirs.getByRole('button', { name: 'Save' }).click()
  await theirs.getByRole('status').getByText('This was changed').waitFor()
  assert.equal(await topic.isChecked(), false)
  await theirs.getByRole('button', { name: 'Unsubscribe from everything' }).click()
  await theirs.getByRole('status').waitFor()
  assert.equal(await theirs.getByRole('checkbox', { name: 'E-mail' }).isChecked(), false)
  if (process.env.MUSTER_SHOTS) await theirs.screenshot({ path: `${process.env.MUSTER_SHOTS}/preferences-page-390.png` })
  await plain.close()
  assert.deepEqual((await w.people('GET', `/lists/${news._id}/members`)).members, [])

  // The log has each word with its evidence.
  await w.open(`/people/${ann._id}`)
  await page.getByRole('tab', { name: 'Consent' }).click()
  const log = page.getByTestId('consent-log-entry')
  await until('the log has the choices', async () => assert.ok((await log.count()) >= 3))
  const entries = await log.allInnerTexts()
  assert.ok(entries.some((e) => /Topic Newsletter: /.test(e) && e.includes('from preferences') && e.includes('network 127.0.0.0/24')), entries.join('\n---\n'))
  assert.ok(entries.some((e) => /E-mail: unsubscribed/.test(e) && e.includes('Unsubscribe from everything')), entries.join('\n---\n'))
  await w.axe('the log of consents')
  await w.shots('preferences-log')
  assert.equal(context.pages().length, 1)
})
