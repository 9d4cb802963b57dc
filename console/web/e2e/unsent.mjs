// What the server kept instead of sending it: a list, and each message as its recipient would have seen it.
import assert from 'node:assert/strict'
import { run, until } from './lib/run.mjs'

const many = 55 // more than a page

await run(async (w) => {
  const { page } = w
  await w.open('/home')
  await page.getByRole('link', { name: 'Unsent messages' }).click()
  await page.getByText('No unsent message', { exact: true }).waitFor()
  await w.axe('no unsent message')

  const html = '<h1>Dear {{first_name}}</h1><script>top.document.title = "hacked"</script><p><a href="{{unsubscribe_url}}">Bye</a></p>'
  const template = await w.people('POST', '/templates', { name: 'Order', source: 'LIST', subject: 'Your order {{order}}', html, text: 'Plain words', transactional: true })
  for (let i = 0; i < many; i++) await w.people('POST', '/email/send', { to: `person${i}@example.com`, template_id: template._id, data: { order: String(1000 + i), first_name: `Ann ${i}` } })
  await until('all are kept', async () => (await w.people('GET', '/outbox?limit=100')).length === many)
  const campaign = await w.people('POST', '/campaigns', { name: 'Text', channel: 2, type: 2, body: 'Only words <b>here</b>', date: '1970-01-01T00:00:00Z' })
  await w.people('POST', `/campaigns/${campaign._id}/test-send`, { to: ['+491701234567'] })

  // The newest first, a page at a time.
  await page.getByRole('button', { name: 'Refresh' }).click()
  const rows = page.getByRole('row').filter({ has: page.getByRole('cell') })
  await rows.first().filter({ hasText: '+491701234567' }).filter({ hasText: 'The server has no provider for SMS.' }).waitFor()
  await until('the first page is whole', async () => assert.equal(await rows.count(), 50))
  await w.axe('the list of unsent messages')
  await w.shots('unsent')
  await page.getByRole('button', { name: 'Show more' }).click()
  await until('the second page is there', async () => assert.equal(await rows.count(), many + 1))
  await page.getByRole('button', { name: 'Show more' }).waitFor({ state: 'detached' })

  // A text is a text.
  await page.getByRole('button', { name: /Only words/ }).click()
  const drawer = page.getByRole('dialog')
  await drawer.getByRole('region', { name: 'Text of the message' }).filter({ hasText: 'Only words <b>here</b>' }).waitFor()
  assert.equal(await drawer.locator('iframe').count(), 0)
  await page.keyboard.press('Escape')
  await drawer.waitFor({ state: 'hidden' })

  // By channel and address; HTML without its scripts.
  await page.getByLabel('Channel').selectOption('E-mail')
  await page.getByRole('searchbox', { name: 'To' }).fill('person7@example.com')
  await until('one is left', async () => assert.equal(await rows.count(), 1))
  const counted = []
  page.on('response', (r) => /^http/.test(r.url()) && new URL(r.url()).pathname.startsWith('/t/') && counted.push(`${r.status()} ${r.url()}`))
  w.forgive(/Blocked script execution in 'about:srcdoc'|violates the following Content Security Policy/)
  await page.getByRole('button', { name: 'Your order 1007' }).click()
  const frame = page.frameLocator('iframe[title="The message"]')
  await frame.getByRole('heading', { name: 'Dear Ann 7' }).waitFor()
  assert.equal(await page.locator('iframe[title="The message"]').getAttribute('sandbox'), '')
  assert.ok(!(await page.title()).includes('hacked'))
  await drawer.getByText('The server has no mail relay.').waitFor()
  // Looking at it counts neither as an open nor as a click.
  await frame.getByRole('link', { name: 'Bye' }).click()
  w.forgive(/Blocked opening/)
  await frame.getByRole('heading', { name: 'Dear Ann 7' }).waitFor()
  await w.axe('an unsent e-mail')
  await w.shots('unsent-message')
  await drawer.getByRole('tab', { name: 'Plain text' }).click()
  await drawer.getByText('Plain words').waitFor()
  await drawer.getByRole('tab', { name: 'Source' }).click()
  await drawer.locator('.cm-content').filter({ hasText: 'send_id' }).waitFor()
  await w.axe('the source of an unsent e-mail')

  // The address leads to it again; what is not there is said.
  await page.reload()
  await drawer.getByRole('heading', { name: 'Your order 1007' }).waitFor()
  await page.goto(`${w.url}/console/unsent?open=999999`)
  await page.getByText('Message 999999 is not among them').waitFor()
  await page.goto(`${w.url}/console/unsent?to=nobody%40example.com`)
  await page.getByText('No message matches.').waitFor()

  // A failure is said, and can be tried again.
  w.forgive(/500 \(Internal Server Error\)/)
  await page.route('**/outbox?**', (route) => route.fulfill({ status: 500, contentType: 'application/json', body: '{"status":"error","message":"The disk is full."}' }))
  await page.goto(`${w.url}/console/unsent`)
  await page.getByRole('alert').getByText('The disk is full.').waitFor()
  await page.unroute('**/outbox?**')
  await page.getByRole('button', { name: 'Try again' }).click()
  await rows.first().waitFor()

  // A server that sends everything keeps nothing.
  w.forgive(/404 \(Not Found\)/)
  await page.route('**/outbox?**', (route) => route.fulfill({ status: 404, contentType: 'application/json', body: '{"status":"error","message":"this server captures no messages"}' }))
  await page.goto(`${w.url}/console/unsent`)
  await page.getByText('This server keeps no messages').waitFor()
  await page.unroute('**/outbox?**')

  assert.deepEqual(counted, [], 'an open or a click was counted')
  await page.setViewportSize({ width: 390, height: 844 })
  await page.goto(`${w.url}/console/unsent`)
  await rows.first().waitFor()
  await until('the page fits a phone', () => page.evaluate(() => document.documentElement.scrollWidth <= 390))
  await page.evaluate(() => document.documentElement.setAttribute('data-mantine-color-scheme', 'dark'))
  await w.axe('the dark list on a phone')
})
