// Screen 8: templates and campaigns, from the first word to the clicks by link.
import assert from 'node:assert/strict'
import { run, until } from './lib/run.mjs'
import { shop } from './lib/shop.mjs'

const number = (text) => Number(text.replaceAll(',', ''))

await run(async (w) => {
  const { page } = w
  const code = async (label, text) => {
    await page.getByRole('textbox', { name: label }).click()
    await page.keyboard.press('Control+A')
    await page.keyboard.insertText(text)
  }
  const frame = page.frameLocator('iframe[title="The message"]')

  await w.open('/campaigns')
  await page.getByText('There is no campaign yet').waitFor()
  await w.axe('the empty list of campaigns')
  await w.open('/templates')
  await page.getByText('There is no template yet').waitFor()

  const { events, people } = shop()
  await w.send(events)
  // A third of them subscribed, two of these unsubscribed again, one asked for nothing.
  const subscribed = people.filter((_, i) => i % 3 === 0)
  const gone = subscribed.slice(0, 2)
  for (const p of [...subscribed, ...gone]) {
    const { profile_id } = await w.people('GET', `/profiles?email=${encodeURIComponent(p.email)}`)
    p.status = p.status ? 'unsubscribed' : 'subscribed'
    await w.people('POST', `/profiles/${profile_id}/consent`, { channel: 'email', status: p.status })
  }
  const country = await w.people('POST', '/segments', { name: 'All countries', definition: { kind: 'attribute', field: 'geo.country', op: 'exists' } })
  const many = await Promise.all(Array.from({ length: 120 }, (_, i) => w.people('POST', '/lists', { name: `List ${i}` })))
  const left = subscribed.slice(-3)
  for (const p of left) await w.people('POST', `/lists/${many[119]._id}/contacts`, { email: p.email })

  // A template: what is typed is shown for a real person before it is saved.
  await page.getByRole('link', { name: 'New template' }).first().click()
  await page.getByRole('textbox', { name: 'Name' }).fill('Sale')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('textbox', { name: 'Subject' }).fill('Hello {{first_name}}')
  await code('HTML of the message', '<h1>Dear {{last_name}}</h1><p><a href="https://shop.example/sale">Look</a></p><script>document.title = "hacked"</script><p><a href="{{unsubscribe_url}}">Bye</a></p>')
  await page.getByRole('combobox', { name: 'Shown for' }).fill('person7@')
  await page.getByRole('option', { name: /person7@example.com/ }).click()
  await page.getByTestId('preview-subject').filter({ hasText: 'Hello Ben' }).waitFor()
  await frame.getByRole('heading', { name: 'Dear Example 7' }).waitFor()
  w.forgive(/Blocked script execution in 'about:srcdoc'/)
  assert.ok(!(await page.title()).includes('hacked'))
  assert.ok(page.url().includes('person='), 'who is shown is in the address')
  await code('HTML of the message', '<p>{{first_name</p>')
  await page.getByRole('alert').filter({ hasText: /html/ }).waitFor()
  w.forgive(/400 \(Bad Request\)/)
  await code('HTML of the message', '<h1>Dear {{last_name}}</h1><p><a href="https://shop.example/sale">Look</a> or <a href="https://shop.example/news">read</a></p><p><a href="{{unsubscribe_url}}">Bye</a></p>')
  await frame.getByText('or read').waitFor()
  await w.axe('the editor of templates')
  await w.shots('template')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Sale is saved.').waitFor()
  const [template] = await w.people('GET', '/templates')
  assert.equal(template.subject, 'Hello {{first_name}}')

  // From a saved template the way leads on to a campaign that sends it.
  await page.getByRole('link', { name: 'Use in a campaign' }).click()
  await page.getByRole('textbox', { name: 'Name' }).waitFor()
  assert.ok(page.url().endsWith(`/console/campaigns/new?template=${template._id}`), page.url())

  // A campaign of its own HTML.
  await w.open('/campaigns/new')
  await page.getByRole('textbox', { name: 'Name' }).fill('January sale')
  await page.getByRole('button', { name: 'Create a draft' }).click()
  await page.getByRole('textbox', { name: 'Subject' }).fill('Only for {{first_name}}')
  await code('HTML of the message', '<p>Dear {{first_name}}, <a href="https://shop.example/sale">look</a> or <a href="https://shop.example/news">read</a>.</p>')
  await frame.getByText('look or read').waitFor()
  // The palette opens wherever the focus is, also in a field and in the editor of HTML.
  for (const field of ['Subject', 'HTML of the message']) {
    await page.getByRole('textbox', { name: field }).press('Control+k')
    await page.getByRole('textbox', { name: 'Command', exact: true }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('textbox', { name: 'Command', exact: true }).waitFor({ state: 'hidden' })
  }
  const before = await w.people('GET', '/campaigns')
  assert.equal(before[0].subject, '', 'the preview saves nothing')
  // It is shown for somebody who would get it.
  const chosen = await page.getByRole('combobox', { name: 'Shown for' }).inputValue()
  assert.ok(people.some((p) => p.status === 'subscribed' && chosen.includes(p.email)), `${chosen} would get nothing`)
  assert.equal(await page.getByText('It would not be sent to this person').count(), 0)
  await w.axe('the message of a campaign')
  await w.shots('campaign-message')

  // A test goes to the one who is signed in.
  await page.getByRole('button', { name: 'Send a test' }).click()
  const result = page.getByRole('status', { name: 'Result of the test' })
  await result.getByText('kept', { exact: true }).waitFor()
  const [button, said] = await Promise.all([page.getByRole('button', { name: 'Send a test' }).boundingBox(), result.boundingBox()])
  assert.ok(said.y >= 0 && said.y + said.height <= page.viewportSize().height && Math.abs(said.y - button.y) < 40, `the result is at ${said.y}, the button at ${button.y}`)
  await page.getByTestId('captured').getByText('E-mails are not sent: the server keeps them. It has no mail relay').waitFor()
  assert.equal(await page.getByRole('link', { name: 'See the unsent messages' }).first().getAttribute('href'), '/console/unsent?channel=email')
  const test = (await w.people('GET', `/outbox?to=${encodeURIComponent(w.creds.console_email)}`))[0]
  assert.match(test.subject, /^\[Test\] Only for /)

  // The audience as numbers that add up, equal to those of the API.
  await page.getByRole('tab', { name: '2. Audience' }).click()
  await page.getByRole('combobox', { name: 'Audience' }).click()
  await page.getByRole('option', { name: /All countries/ }).click()
  await page.keyboard.press('Escape')
  await page.getByTestId('audience').waitFor()
  const [campaign] = await w.people('GET', '/campaigns')
  const wanted = await w.people('POST', `/campaigns/${campaign._id}/audience`, { segment_ids: [country._id] })
  assert.equal(wanted.count, people.length)
  assert.equal(wanted.reachable, subscribed.length - gone.length)
  await until('the audience is counted', async () => assert.equal(number(await page.getByTestId('audience-count').innerText()), wanted.count))
  await until('who can be reached is counted', async () => assert.equal(number(await page.getByTestId('audience-reachable').innerText()), wanted.reachable))
  await page.getByTestId('audience').getByText('never subscribed').waitFor()
  assert.equal(wanted.count - Object.values(wanted.skipped).reduce((a, b) => a + b, 0), wanted.reachable)
  await w.axe('the audience of a campaign')
  await w.shots('campaign-audience')
  // It says how people come to be subscribed, and each look at the numbers counts again.
  for (const [name, path] of [['import', '/console/imports'], ['settings of the account', '/console/settings']]) assert.equal(await page.getByRole('tabpanel').getByRole('link', { name }).getAttribute('href'), path)
  const { profile_id: back } = (await w.people('GET', `/profiles?email=${encodeURIComponent(gone[0].email)}`))
  for (const [status, tab, more] of [['subscribed', '3. Send', 1], ['unsubscribed', '2. Audience', 0]]) {
    await w.people('POST', `/profiles/${back}/consent`, { channel: 'email', status })
    await page.getByRole('tab', { name: tab }).click()
    await until('it is counted again', async () => assert.equal(number(await page.getByTestId('audience-reachable').innerText()), wanted.reachable + more), 5000)
  }

  // Without the members of a list: one click makes the segment and chooses it. Any of the lists is offered.
  await page.getByRole('combobox', { name: 'Except members of' }).fill('List 119')
  await page.getByRole('option', { name: 'List 119' }).click()
  await page.keyboard.press('Escape')
  await page.getByText('This makes the segment “All countries except List 119” and sends to it.').waitFor()
  await w.axe('an audience without a list')
  await w.shots('campaign-except')
  await page.getByRole('button', { name: 'Leave them out' }).click()
  await until('they are left out', async () => assert.equal(number(await page.getByTestId('audience-count').innerText()), people.length - left.length))
  wanted.reachable -= left.length
  await until('who can be reached is counted again', async () => assert.equal(number(await page.getByTestId('audience-reachable').innerText()), wanted.reachable))
  const made = (await w.people('GET', '/segments')).find((s) => s.name === 'All countries except List 119')
  assert.equal(made.count, people.length - left.length)
  assert.deepEqual(made.definition, { match: 'all', conditions: [{ kind: 'segment', segment_id: country._id }, { kind: 'list', list_id: many[119]._id, member: false }] })

  // Scheduling, and taking it back.
  await page.getByRole('tab', { name: '3. Send' }).click()
  await page.getByText('Later', { exact: true }).click()
  await page.getByText('Choose a time that is to come.').waitFor()
  await w.axe('the schedule of a campaign')
  await page.getByText('A/B test', { exact: true }).click()
  await page.getByText('Give each variant a subject.').waitFor()
  await w.axe('an A/B test')
  await w.shots('campaign-test')
  await page.getByText('Now', { exact: true }).click()

  // Sending asks with the exact number, then shows what became of it.
  await page.getByRole('button', { name: `Send to ${wanted.reachable}` }).click()
  const question = page.getByRole('dialog')
  await question.getByText(`Send January sale to ${wanted.reachable} people?`).waitFor()
  await question.getByText('The messages are kept by the server and reach nobody').waitFor()
  await w.axe('the question before sending')
  await question.getByRole('button', { name: 'Cancel' }).click()
  await question.waitFor({ state: 'hidden' })
  assert.equal((await w.people('GET', `/campaigns/${campaign._id}`)).status, 'draft')
  await page.getByRole('button', { name: `Send to ${wanted.reachable}` }).click()
  await question.getByRole('button', { name: `Send to ${wanted.reachable}` }).click()
  await page.getByTestId('tile-Sent').waitFor()
  await until('all are sent', async () => assert.equal(number(await page.getByTestId('tile-Sent').innerText()), wanted.reachable))
  await page.getByText('sent', { exact: true }).first().waitFor()
  await page.getByTestId('captured').getByText('messages that count as sent here are kept by it and reach nobody').waitFor()

  assert.equal(await page.getByTestId('tile-Delivered').innerText(), 'not reported')

  // Somebody opens it and clicks: the results say which link.
  const mails = await w.people('GET', '/outbox?limit=100')
  const mine = mails.filter((m) => m.subject.startsWith('Only for'))
  assert.equal(mine.length, wanted.reachable)
  const link = /href="([^"]*)"[^>]*>look/.exec(mine[0].html)[1].replaceAll('&amp;', '&')
  assert.ok(link.includes('/t/') || !link.startsWith('https://shop.example'), link)
  const path = new URL(link)
  const clicked = await fetch(`${w.url}${path.pathname}${path.search}`, { redirect: 'manual', headers: { 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0' } })
  assert.equal(clicked.headers.get('location'), 'https://shop.example/sale')
  const sale = page.getByTestId('link').filter({ hasText: 'https://shop.example/sale' })
  await until('the click is counted on the open page', async () => (await sale.count()) > 0 && /\b1$/.test((await sale.innerText()).trim()))
  assert.equal((await w.people('GET', `/campaigns/${campaign._id}/stats`)).links.find((l) => l.url === 'https://shop.example/sale').clicks, 1)
  const [csv] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download the clicks by link as CSV' }).click()])
  assert.match(csv.suggestedFilename(), /links\.csv$/)
  await w.axe('the results of a campaign')
  await w.shots('campaign-results')
  await page.getByText('Recipients', { exact: true }).click()
  await page.getByRole('cell', { name: mine[0].to }).waitFor()
  await w.axe('the recipients of a campaign')

  // What was sent is shown as it was, and looks it; it can be opened again for people who come later.
  await page.getByRole('link', { name: 'Message and audience' }).click()
  await page.getByRole('note').getByText('This campaign was sent').waitFor()
  const subject = page.getByRole('textbox', { name: 'Subject' })
  assert.equal(await subject.isEditable(), false)
  assert.equal(await page.getByRole('button', { name: 'Save' }).count(), 0)
  await w.axe('a sent campaign')
  await w.shots('campaign-sent')
  await page.getByRole('tab', { name: '3. Send' }).click()
  await page.getByText('It was sent. Its results say to whom').waitFor()
  assert.equal(await page.getByRole('button', { name: /^Send to/ }).count(), 0)
  await page.getByRole('button', { name: 'Open it again' }).click()
  await page.getByText('Nobody would get it.').waitFor()
  await page.getByTestId('audience').getByText('got it already').waitFor()

  // The list has it, with its numbers; a copy is a draft.
  await w.open('/campaigns')
  const row = page.getByRole('row').filter({ hasText: 'January sale' })
  await until('the list has the numbers', async () => assert.match(await row.innerText(), new RegExp(`\\b${wanted.reachable}\\b`)))
  await w.axe('the list of campaigns')
  await w.shots('campaigns')
  await row.getByRole('button', { name: 'Actions of January sale' }).click()
  await page.getByRole('menuitem', { name: 'Duplicate' }).click()
  await page.getByRole('button', { name: 'Create a draft' }).click()
  await page.getByRole('textbox', { name: 'Subject' }).waitFor()
  await until('the subject is filled in', async () => assert.equal(await page.getByRole('textbox', { name: 'Subject' }).inputValue(), 'Only for {{first_name}}'))

  // The copy sends the template; so the template cannot be deleted.
  await page.getByText('Template', { exact: true }).click()
  await page.getByTestId('preview-subject').filter({ hasText: /^Hello / }).waitFor()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Copy of January sale is saved.').waitFor()
  await page.getByRole('link', { name: 'Open it' }).click()
  await page.getByText(/Used in campaign Copy of January sale/).waitFor()
  await w.open('/templates')
  await page.getByRole('button', { name: 'Actions of Sale' }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByText('It cannot be deleted while it is used in campaign Copy of January sale.').waitFor()
  await w.axe('the list of templates')

  // A campaign by WhatsApp: a text until a template is named.
  await w.open('/campaigns/new')
  await page.getByLabel('Name', { exact: true }).fill('Chat')
  await page.getByLabel('Channel').selectOption({ label: 'WhatsApp' })
  await page.getByRole('button', { name: 'Create a draft' }).click()
  await page.getByRole('textbox', { name: 'Text' }).fill('Hello')
  await page.getByTestId('preview-text').filter({ hasText: /^Hello$/ }).waitFor()
  await page.getByRole('textbox', { name: 'Template' }).fill('january_sale')
  await page.getByRole('textbox', { name: 'Language' }).fill('en_US')
  await page.getByRole('textbox', { name: 'Parameters' }).fill('{{first_name | there}}\nall')
  assert.equal(await page.getByRole('textbox', { name: 'Text' }).count(), 0)
  await page.getByTestId('preview-text').filter({ hasText: /^template january_sale \(en_US\)\s+\S+\s+all$/ }).waitFor()
  await w.axe('a campaign by WhatsApp')
  await w.shots('campaign-whatsapp')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Chat is saved.').waitFor()
  const chat = (await w.people('GET', '/campaigns')).find((c) => c.name === 'Chat')
  assert.deepEqual([chat.type, chat.service, chat.whatsapp], [3, 'whatsapp', { template: 'january_sale', language: 'en_US', parameters: ['{{first_name | there}}', 'all'], header: '' }])

  // A push message with a picture, that replaces an earlier one.
  await w.open('/campaigns/new')
  await page.getByLabel('Name', { exact: true }).fill('Ring')
  await page.getByLabel('Channel').selectOption({ label: 'Push' })
  await page.getByRole('button', { name: 'Create a draft' }).click()
  await page.getByRole('textbox', { name: 'Title' }).fill('Sale')
  await page.getByRole('textbox', { name: 'Text' }).fill('Now')
  await page.getByRole('textbox', { name: 'Opens' }).fill('myapp://sale')
  await page.getByRole('textbox', { name: 'Picture' }).fill('https://shop.example/sale.jpg')
  await page.getByRole('textbox', { name: 'Replaces earlier ones named' }).fill('sale')
  await page.getByRole('textbox', { name: 'Hours to keep trying' }).fill('24')
  await page.getByRole('checkbox', { name: 'Count the clicks on links' }).check()
  await w.axe('a push message')
  await w.shots('campaign-push')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Ring is saved.').waitFor()
  const ring = (await w.people('GET', '/campaigns')).find((c) => c.name === 'Ring')
  assert.deepEqual([ring.link, ring.track_links, ring.push], ['myapp://sale', true, { image: 'https://shop.example/sale.jpg', collapse: 'sale', ttl_seconds: 86400 }])

  // On a phone nothing is wider than the screen.
  await page.setViewportSize({ width: 390, height: 844 })
  const shows = { [`/campaigns/${campaign._id}`]: 'Sends', [`/campaigns/${campaign._id}/edit`]: 'Preview', '/campaigns': 'Table of campaigns', '/home': 'Table of messages by channel', [`/templates/${template._id}`]: 'Preview' }
  for (const [address, region] of Object.entries(shows)) {
    await w.open(address)
    await page.getByRole('region', { name: region, exact: true }).waitFor()
    await until(`${address} fits a phone`, () => page.evaluate(() => document.documentElement.scrollWidth <= 390))
    await w.axe(`${address} on a phone`)
  }
  // A table that is wider than the phone is scrolled by the keyboard alone.
  await w.open(`/campaigns/${campaign._id}`)
  const sends = page.getByRole('region', { name: 'Table of sends' })
  await sends.focus()
  await page.keyboard.press('ArrowRight')
  await until('the table is scrolled', () => sends.evaluate((e) => e.scrollLeft > 0))
  await w.open(`/templates/${template._id}`)
  await page.getByRole('region', { name: 'Preview' }).waitFor()
  await page.evaluate(() => document.documentElement.setAttribute('data-mantine-color-scheme', 'dark'))
  await w.axe('a dark template on a phone')
})
