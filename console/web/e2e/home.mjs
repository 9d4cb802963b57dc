// Screen 10: the first steps of an empty account, then its numbers.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createServer } from 'node:net'
import { run, until } from './lib/run.mjs'
import { shop } from './lib/shop.mjs'

/** A port of this machine that nobody listens on. */
const closedPort = () => new Promise((go) => {
  const s = createServer().listen(0, '127.0.0.1', () => {
    const { port } = s.address()
    s.close(() => go(port))
  })
})

/** Runs a shell script with the App Secret in its environment. */
const shell = (script, secret) => new Promise((resolve, reject) => execFile('sh', ['-c', script], { env: { ...process.env, MUSTER_APP_SECRET: secret } }, (e, out, err) => (e ? reject(new Error(`${e.message}\n${err}`)) : resolve(out))))

await run(async (w) => {
  const { page } = w
  // Nothing is asked for again and again while the page waits.
  const calls = []
  page.on('request', (r) => r.url().includes('/console/api/') && calls.push(r.url()))

  await w.open('/')
  await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
  assert.ok(page.url().includes('/console/home'), page.url())
  await page.getByText('Waiting for the first event').waitFor()
  const first = page.getByRole('listitem').filter({ hasText: 'Send the first event' })
  await first.getByRole('img', { name: 'To do' }).waitFor()
  await w.axe('the home of an empty account')
  await w.shots('home-empty')
  for (const name of ['Go', 'Node.js', 'Python', 'Browser', 'curl']) {
    await page.getByRole('tab', { name, exact: true }).click()
    await page.getByLabel(`The first call in ${name}`).filter({ hasText: w.creds.app_id }).waitFor()
  }
  const script = await page.getByLabel('The first call in curl').innerText()
  assert.ok(!script.includes(w.creds.app_secret), 'the secret is shown though the server keeps only its hash')

  // A refused event says why, where the person is looking.
  const refused = await fetch(`${w.creds.base_url}/events`, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-App-Id': w.creds.app_id, 'X-App-Secret': w.creds.app_secret }, body: '{"event_type":"Signed Up","user":{"external_id":"42"}}' })
  await refused.text()
  await page.getByText('An event was refused at').waitFor()
  await page.getByText('must be a key in snake case').waitFor()
  await w.axe('a refused first event')

  // The snippet as it stands sends the event, and the step ticks itself.
  const before = calls.length
  const answer = JSON.parse(await shell(script, w.creds.app_secret))
  assert.equal(answer.success, true)
  await first.getByRole('img', { name: 'Done' }).waitFor()
  await page.getByRole('status').getByText('signed_up arrived at').waitFor()
  await page.getByTestId('tile-Events').filter({ hasText: '1' }).waitFor()
  assert.ok(calls.slice(before).every((u) => !/events\/live$/.test(u)), 'the stream of the first steps was opened again')
  await w.axe('the first event')
  await w.shots('home-first-event')

  // A new secret is in the snippets once.
  await page.getByRole('button', { name: 'I do not have it: make a new one' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Make a new one' }).click()
  await page.getByText('The new App Secret is in the code above').waitFor()
  const again = await page.getByLabel('The first call in curl').innerText()
  assert.match(again, /MUSTER_APP_SECRET='sk_live_/)
  assert.equal(JSON.parse(await shell(again.replace('signup-42', 'signup-43'), 'wrong')).success, true)
  w.creds.app_secret = /MUSTER_APP_SECRET='([^']+)'/.exec(again)[1]
  await page.reload()
  await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor()
  assert.ok(!(await page.content()).includes(w.creds.app_secret), 'the new secret is shown again')

  // The other steps tick themselves by what is there; then the numbers agree with the API.
  await w.people('POST', '/segments', { name: 'Buyers', definition: { kind: 'activity', event: 'item_purchased' } })
  const { events } = shop()
  await w.send(events)
  await page.reload()
  const second = page.getByRole('listitem').filter({ hasText: 'Save a segment' })
  await second.getByRole('img', { name: 'Done' }).waitFor()
  const overview = await w.people('GET', '/analytics/overview')
  await page.getByTestId('tile-People').filter({ hasText: new RegExp(`^${overview.contacts.total}$`) }).waitFor()
  await page.getByText('30 days', { exact: true }).click()
  const month = await w.people('GET', `/analytics/events?from=${new Date(Date.now() - 30 * 86_400_000).toISOString()}`)
  const bought = month.events.find((e) => e.event_type === 'item_purchased')
  assert.ok(bought.events > 50)
  await page.getByRole('row').filter({ hasText: 'item_purchased' }).filter({ hasText: String(bought.events) }).waitFor()
  await page.locator('.uplot canvas').first().waitFor()
  await w.axe('the home of an account with events')
  await w.shots('home')
  await page.getByRole('button', { name: 'Hide' }).click()
  await page.getByRole('heading', { name: 'First steps' }).waitFor({ state: 'detached' })

  // The open page follows what arrives.
  let came = 0
  await until('the number of people rises by itself', async () => {
    if (Number((await page.getByTestId('tile-People').innerText()).replaceAll(',', '')) > overview.contacts.total) return
    await w.send([{ event_type: 'signed_up', user: { email: `later${came++}@example.com` } }])
    return false
  })

  // A webhook that nobody answers is an alarm with a link.
  const hook = await w.people('POST', '/webhooks', { url: `http://127.0.0.1:${await closedPort()}/none`, events: ['contact.created'], description: 'Warehouse' })
  await w.people('POST', `/webhooks/${hook._id}/test`)
  await until('the delivery failed', async () => assert.ok((await w.people('GET', '/webhooks'))[0].failing > 0))
  await page.reload()
  await page.getByText('One thing needs a look').waitFor()
  await page.getByRole('alert').getByText('Warehouse').waitFor()
  await w.axe('an alarm')

  await page.setViewportSize({ width: 390, height: 844 })
  await until('the page fits a phone', () => page.evaluate(() => document.documentElement.scrollWidth <= 390))
  await page.evaluate(() => document.documentElement.setAttribute('data-mantine-color-scheme', 'dark'))
  await w.axe('the dark home on a phone')
})
