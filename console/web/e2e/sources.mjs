// Sources: an application sends by an SDK, with a key of its own; what it saw of a visitor
// before the sign-in is on the person's page.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { run, until } from './lib/run.mjs'

await run(async (w) => {
  const { page } = w
  const dialog = page.getByRole('dialog')
  const section = (name) => page.getByRole('navigation', { name: 'Sections of the settings' }).getByRole('link', { name, exact: true })
  const code = page.getByLabel('Code to send events')
  const calls = page.getByRole('status', { name: 'Calls of this source' })
  const post = (key, path, body, headers) => fetch(w.url + path, { method: 'POST', headers: { Authorization: `Basic ${btoa(key + ':')}`, 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) })

  await w.open('/settings')
  await section('Sources').click()
  await page.getByText('There is no source').waitFor()
  await w.axe('no source')

  // A source for pages: its key is in the code, and the first call shows by itself.
  await page.getByRole('button', { name: 'New source' }).first().click()
  await dialog.getByLabel('Name').fill('Shop')
  await w.axe('a new source')
  await dialog.getByRole('button', { name: 'Make the source' }).click()
  await page.getByText('Waiting for the first call').waitFor()
  const [shop] = await w.people('GET', '/sources')
  const first = shop.keys[0].key
  assert.match(first, /^wk_/)
  assert.ok((await code.innerText()).includes(`writeKey: '${first}'`))
  assert.ok((await code.innerText()).includes(`cdnURL: '${w.url}'`))
  await w.axe('a source that waits for its first call')
  await w.shots('settings-source')
  await page.getByLabel('SDK', { exact: true }).selectOption('curl')
  assert.equal(execFileSync('bash', ['-c', `${await code.innerText()} -s`], { encoding: 'utf8' }).trim(), '{"success":true}')
  await calls.getByText('The last call came').waitFor()
  assert.equal((await post(first, '/v1/track', { event: 'Product Viewed' })).status, 200)
  await calls.getByText('An event was refused at').waitFor()
  await w.axe('a source that was called')

  // Only pages of its origins may send.
  await page.getByLabel('Allowed origins').fill('https://shop.example\nhttps://*.shop.example')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await until('the origins are saved', async () => assert.deepEqual((await w.people('GET', `/sources/${shop._id}`)).allowed_origins, ['https://shop.example', 'https://*.shop.example']))
  const viewed = { anonymousId: 'device-1', event: 'Product Viewed' }
  assert.equal((await post(first, '/v1/track', viewed, { Origin: 'https://www.shop.example' })).status, 200)
  assert.ok((await post(first, '/v1/track', viewed, { Origin: 'https://evil.example' })).status >= 400)
  await page.getByLabel('Allowed origins').fill('shop.example/path')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('The settings were not saved').waitFor()
  w.forgive(/status of 400/)

  // Another key; the first one stops working.
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByRole('button', { name: /^Revoke the key/ }).nth(1).waitFor()
  await page.getByRole('button', { name: `Revoke the key ${first}` }).click()
  await dialog.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('row').filter({ hasText: first }).getByText('revoked', { exact: true }).waitFor()
  const second = (await w.people('GET', `/sources/${shop._id}`)).keys[1].key
  await until('the code has the new key', async () => (await code.innerText()).includes(second))
  assert.equal((await post(first, '/v1/track', viewed)).status, 401)
  assert.equal((await post(second, '/v1/track', viewed)).status, 200)
  await w.axe('a source with a revoked key')

  // A visitor sees two pages, signs in, and is one person with what was before.
  const batch = [
    { type: 'page', anonymousId: 'device-42', name: 'Home', properties: { url: 'https://shop.example/' } },
    { type: 'page', anonymousId: 'device-42', name: 'Sale', properties: { url: 'https://shop.example/sale' } },
    { type: 'identify', anonymousId: 'device-42', userId: 'user-42', traits: { email: 'ann@example.com', firstName: 'Ann' } },
  ]
  assert.equal((await post(second, '/v1/batch', { batch })).status, 200)
  const ann = await w.people('GET', '/profiles?email=ann@example.com')
  await w.open(`/people/${ann.profile_id}`)
  for (const title of ['Viewed Home', 'Viewed Sale']) await page.getByTestId('entry').filter({ hasText: title }).waitFor()
  await page.getByRole('tab', { name: 'Profile' }).click()
  await page.getByTestId('anonymous').getByText('device-42', { exact: true }).waitFor()
  await w.axe('a person with an anonymous id')
  await w.shots('person-anonymous')

  // A server's key is a secret: it is in the code once.
  await w.open('/settings/sources')
  await page.getByRole('row').filter({ hasText: 'Shop' }).getByText('sends').waitFor()
  await page.getByRole('button', { name: 'New source' }).click()
  await dialog.getByLabel('Name').fill('Backend')
  await dialog.getByRole('radio', { name: 'Servers' }).check()
  await dialog.getByRole('button', { name: 'Make the source' }).click()
  await page.getByText('now and never again').waitFor()
  const secret = /writeKey: '(wk_[^']+)'/.exec(await code.innerText())[1]
  await w.axe('the secret key of a server')
  for (const option of await page.getByLabel('SDK', { exact: true }).locator('option').all()) {
    await page.getByLabel('SDK', { exact: true }).selectOption(await option.getAttribute('value'))
    assert.ok((await code.innerText()).includes(secret), await option.innerText())
  }
  assert.equal((await post(secret, '/v1/track', { userId: 'user-42', event: 'Order Completed' })).status, 200)
  await page.reload()
  await page.getByText('Put the write key in the place of YOUR_WRITE_KEY').waitFor()
  assert.ok(!(await page.content()).includes(secret), 'the secret is still in the page')
  await page.getByRole('button', { name: 'New key' }).click()
  assert.match(await page.getByLabel('Write key', { exact: true }).innerText(), /^wk_/)
  await w.axe('another secret key')
  await page.getByRole('button', { name: 'I have stored it' }).click()

  // Off, and deleted.
  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: 'Turn off: refuse its calls' }).click()
  await calls.getByText('off', { exact: true }).waitFor()
  assert.equal((await post(secret, '/v1/track', { userId: 'user-42', event: 'Order Completed' })).status, 401)
  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await until('one source is left', async () => assert.deepEqual((await w.people('GET', '/sources')).map((s) => s.name), ['Shop']))
  await page.getByRole('row').filter({ hasText: 'Shop' }).waitFor()
  await w.axe('the sources')
  await w.shots('settings-sources')
})
