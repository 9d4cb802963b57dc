// Screen 11: keys, webhooks and the other settings.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { run, until } from './lib/run.mjs'

await run(async (w) => {
  const { page } = w
  const dialog = page.getByRole('dialog')
  const section = (name) => page.getByRole('navigation', { name: 'Sections of the settings' }).getByRole('link', { name, exact: true })
  const frame = page.getByRole('heading', { level: 2 })
  const api = (key, path) => fetch(`${w.creds.base_url}${path}`, { headers: { Authorization: `Bearer ${key}` } }).then((r) => r.json()).then((a) => a.status)

  // The settings of the account.
  await w.open('/settings')
  await page.getByRole('heading', { name: 'Consent' }).waitFor()
  await w.axe('the settings of the account')
  await w.shots('settings-account')
  await page.getByLabel('Oldest event that starts flows, in hours').fill('48')
  await page.getByRole('switch', { name: 'Send only to subscribers' }).click()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  assert.equal((await w.people('GET', '/settings')).require_opt_in, true)
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await w.axe('the question before sending to everybody')
  await dialog.getByRole('button', { name: 'Send to them too' }).click()
  await until('the settings are saved', async () => {
    const s = await w.people('GET', '/settings')
    assert.deepEqual([s.require_opt_in, s.flow_event_age_hours], [false, 48])
  })

  // A key is shown once, works, and stops working when it is revoked.
  await section('API keys').click()
  await page.getByRole('button', { name: 'New API key' }).click()
  await dialog.getByLabel('Name').fill('Warehouse')
  await dialog.getByRole('button', { name: 'None' }).click()
  await dialog.getByLabel('Lists: read').check()
  await w.axe('a new key')
  await dialog.getByRole('button', { name: 'Make the key' }).click()
  const key = await page.getByLabel('API key', { exact: true }).innerText()
  await w.axe('a key that is shown once')
  await page.getByRole('button', { name: 'I have stored it' }).click()

  // What the form proposes is a key, too: it offers only what keys can hold.
  await page.getByRole('button', { name: 'New API key' }).click()
  await dialog.getByLabel('Name').fill('Reader')
  assert.equal(await dialog.getByLabel('Settings: read').count(), 0)
  await dialog.getByRole('button', { name: 'Make the key' }).click()
  await page.getByLabel('API key', { exact: true }).waitFor()
  assert.equal(await api(key, '/lists'), 'success')
  assert.equal(await api(key, '/contacts'), 'failure')
  await page.getByRole('button', { name: 'I have stored it' }).click()
  await page.getByRole('row').filter({ hasText: 'Warehouse' }).filter({ hasText: 'read lists' }).waitFor()
  await until('the key has left the page', async () => assert.ok(!(await page.content()).includes(key), 'the key is still in the page'))
  await w.axe('the keys')
  await w.shots('settings-keys')
  await page.getByRole('button', { name: 'Revoke Warehouse' }).click()
  await dialog.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('row').filter({ hasText: 'Warehouse' }).getByText('revoked', { exact: true }).waitFor()
  assert.equal(await api(key, '/lists'), 'failure')

  // A webhook: its secret once, a test, the log with what was answered, sending again.
  const got = []
  let status = 500
  const receiver = createServer((req, res) => {
    let body = ''
    req.on('data', (d) => (body += d))
    req.on('end', () => {
      got.push({ id: req.headers['webhook-id'], body })
      res.writeHead(status).end('the warehouse says so')
    })
  })
  await new Promise((go) => receiver.listen(0, '127.0.0.1', go))
  receiver.unref()
  await section('Webhooks').click()
  await page.getByText('There is no webhook').waitFor()
  await w.axe('no webhook')
  await page.getByRole('button', { name: 'New webhook' }).first().click()
  await dialog.getByLabel('Address').fill(`http://127.0.0.1:${receiver.address().port}/hook`)
  await dialog.getByLabel('What it is for').fill('Warehouse')
  await dialog.getByRole('combobox', { name: 'Notifications' }).fill('contact.cre')
  await page.getByRole('option', { name: 'contact.created' }).click()
  await page.keyboard.press('Escape')
  await dialog.getByRole('button', { name: 'Make the webhook' }).click()
  assert.match(await page.getByLabel('Signing secret').innerText(), /^whsec_/)
  await page.getByRole('button', { name: 'I have stored it' }).click()
  await page.getByRole('link', { name: 'Warehouse' }).click()
  await page.getByText('No delivery').waitFor()
  await page.getByRole('button', { name: 'Send a test' }).click()
  const row = page.getByRole('button', { expanded: false }).filter({ hasText: 'answered 500' })
  await row.filter({ hasText: 'next attempt at' }).first().waitFor()
  await row.first().click()
  await page.getByText('the warehouse says so').first().waitFor()
  await page.getByLabel('Body', { exact: true }).waitFor()
  await w.axe('a delivery that failed')
  await w.shots('settings-webhook')
  status = 204
  const before = got.length
  await page.getByRole('button', { name: 'Send it again' }).click()
  await page.getByText('answered 204').first().waitFor()
  assert.ok(got.length > before)
  assert.equal(got.at(-1).id, got[0].id, 'it was sent again under another id')
  await page.getByRole('tab', { name: 'Dead letters' }).click()
  await page.getByText('No dead letter').waitFor()
  await w.axe('no dead letters')

  // A sender domain with its records; DNS has none of them.
  await section('Sender domains').click()
  await page.getByRole('textbox', { name: 'Domain' }).fill('news.example.invalid')
  await page.getByRole('button', { name: 'Add the domain' }).click()
  const domain = page.getByRole('region', { name: 'news.example.invalid' })
  await domain.getByText('TXT').first().waitFor()
  await w.axe('a sender domain')
  await w.shots('settings-domains')

  // Providers: a key pair is made for browsers.
  await section('Providers').click()
  await page.getByRole('button', { name: 'Set up Browsers (Web Push)' }).click()
  await dialog.getByLabel('Contact').fill('mailto:push@example.com')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('article', { name: 'Browsers (Web Push)' }).getByText('public key:').waitFor()
  await page.getByRole('button', { name: 'Set up Postmark' }).click()
  await w.axe('the form of a provider')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('button', { name: 'I have stored it' }).click()
  await page.getByRole('article', { name: 'Postmark' }).getByText('path:').waitFor()
  await w.axe('the providers')
  await w.shots('settings-providers')

  // A user with few permissions sees what they may, and is told what they may not.
  await section('Users').click()
  await page.getByRole('button', { name: 'New user' }).click()
  await dialog.getByLabel('E-mail').fill('eva@example.com')
  await dialog.getByLabel('First password').fill('correct horse battery')
  await dialog.getByRole('button', { name: 'None' }).click()
  await dialog.getByLabel('Segments: read').check()
  await w.axe('a new user')
  await dialog.getByRole('button', { name: 'Add the user' }).click()
  await page.getByRole('row').filter({ hasText: 'eva@example.com' }).filter({ hasText: 'read segments' }).waitFor()
  await w.axe('the users')

  // Everything above is in the audit log.
  await section('Audit log').click()
  await page.getByRole('row').filter({ hasText: 'user create' }).first().waitFor()
  await page.getByLabel('Kind').selectOption('webhook')
  await until('only webhooks are listed', async () => {
    const rows = await page.getByRole('row').allInnerTexts()
    assert.ok(rows.length > 1 && rows.slice(1).every((r) => r.includes('webhook')), rows.join(' | '))
  })
  await w.axe('the audit log')

  // Another company: it has the API once an administrator opens it.
  await section('Companies').click()
  await page.getByRole('button', { name: 'New company' }).click()
  await dialog.getByLabel('Name').fill('Second Ltd')
  await dialog.getByLabel('E-mail of its first user').fill('second@example.com')
  await dialog.getByRole('button', { name: 'Make the company' }).click()
  const second = await page.getByLabel('API key', { exact: true }).innerText()
  await page.getByRole('button', { name: 'I have stored it' }).click()
  assert.equal(await api(second, '/lists'), 'failure')
  await page.getByRole('switch', { name: 'API access of Second Ltd' }).click()
  await until('its API is open', async () => assert.equal(await api(second, '/lists'), 'success'))
  await w.axe('the companies')
  await w.shots('settings-companies')

  const other = await w.browser.newContext()
  const eva = await other.newPage()
  await eva.goto(`${w.url}/console/settings/webhooks`)
  await eva.getByLabel('E-mail').fill('eva@example.com')
  await eva.locator('input[type=password]').fill('correct horse battery')
  await eva.getByRole('button', { name: 'Sign in' }).click()
  await eva.getByText('It needs the permission').waitFor()
  await eva.getByText('settings:read').waitFor()
  assert.equal(await eva.getByRole('link', { name: 'Companies' }).count(), 0)
  await other.close()

  await page.setViewportSize({ width: 390, height: 844 })
  for (const name of ['Account', 'API keys', 'Webhooks', 'Sender domains', 'Providers', 'Users', 'Audit log', 'Companies']) {
    await section(name).click()
    await frame.first().waitFor()
    await until(`${name} fits a phone`, () => page.evaluate(() => document.documentElement.scrollWidth <= 390))
  }
  await page.evaluate(() => document.documentElement.setAttribute('data-mantine-color-scheme', 'dark'))
  await w.axe('the dark companies on a phone')
})
