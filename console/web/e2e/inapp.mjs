// In-app messages: a secret is made, a campaign is edited with its preview and sent, and an open
// page of another origin, with a strict Content-Security-Policy, shows messages as they come.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import { run, until } from './lib/run.mjs'

await run(async (w) => {
  const { page } = w
  await w.send([{ event_type: 'seen', user: { external_id: 'ann', email: 'ann@example.com', first_name: 'Ann' } }])
  const { profile_id } = await w.people('GET', '/profiles?email=ann@example.com')
  const segment = await w.people('POST', '/segments', { name: 'Seen', definition: { kind: 'activity', event: 'seen', did: true } })
  await until('the segment is live', async () => assert.equal((await w.people('GET', `/segments/${segment._id}`)).status, 'live'))
  const counts = (id, want) => until(`the counts are ${JSON.stringify(want)}`, async () => {
    const got = await w.people('GET', `/campaigns/${id}/stats`)
    assert.deepEqual(Object.fromEntries(Object.keys(want).map((k) => [k, got[k]])), want)
  })

  // The customer's site: a server of its own, so another origin.
  let token = ''
  const policy = `default-src 'none'; script-src 'self' ${w.url}; connect-src 'self' ${w.url}; img-src https:`
  const site = createServer((req, res) => {
    const send = (type, body) => res.writeHead(200, { 'Content-Type': type, 'Content-Security-Policy': policy }).end(body)
    if (req.url === '/muster-token') return send('text/plain', token)
    if (req.url === '/inbox.js') return send('text/javascript', `MusterInApp.start({ token: async () => { const r = await fetch('/muster-token'); if (!r.ok) throw new Error('no token: ' + r.status); return r.text() }, inbox: '#inbox', onUnseen: (n) => { document.title = n + ' unseen' } })`)
    if (req.url === '/') return send('text/html', `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Shop</title><main><h1>Shop</h1><button>Buy</button><div id="inbox"></div></main><script defer src="${w.url}/in-app/muster-inapp.js"></script><script defer src="/inbox.js"></script></html>`)
    return res.writeHead(404).end()
  })
  site.unref() // or a story that fails would never end
  await new Promise((r) => site.listen(0, '127.0.0.1', r))
  const origin = `http://127.0.0.1:${site.address().port}`

  await w.open('/settings/in-app')
  await page.getByText('There is no secret yet').waitFor()
  await page.getByRole('button', { name: 'Make the secret' }).click()
  const secret = await page.getByLabel('In-app secret', { exact: true }).innerText()
  await page.getByRole('dialog').getByRole('button').last().click()
  await page.getByTestId('in-app-secret').waitFor()
  await page.getByRole('combobox', { name: 'Sites that show messages' }).fill(origin)
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('The sites are saved.').waitFor()
  await w.axe('the in-app settings')
  await w.shots('in-app-settings')
  const { issuer } = await w.people('GET', '/in-app/settings')
  const part = (x) => Buffer.from(JSON.stringify(x)).toString('base64url')
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ iss: issuer, sub: 'ann', exp: Math.floor(Date.now() / 1000) + 3600 })}`
  token = `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`

  // The site is open before anything is sent, and is never loaded again.
  const visit = await w.browser.newContext({ viewport: { width: 900, height: 700 }, reducedMotion: 'reduce' })
  const theirs = await visit.newPage()
  const faults = [] // breaches of the policy are among them
  theirs.on('console', (m) => m.type() === 'error' && faults.push(m.text()))
  theirs.on('pageerror', (e) => faults.push(String(e)))
  let loads = 0
  theirs.on('load', () => loads++)
  const shot = async (name) => process.env.MUSTER_SHOTS && (await theirs.screenshot({ path: `${process.env.MUSTER_SHOTS}/${name}.png` }))
  const focused = () => theirs.evaluate(() => {
    const el = document.activeElement?.shadowRoot?.activeElement ?? document.activeElement
    return el?.getAttribute('aria-label') ?? el?.textContent
  })
  await theirs.goto(origin)
  await until('the empty inbox', async () => assert.equal(await theirs.title(), '0 unseen'))

  await w.open('/campaigns/new')
  await page.getByRole('textbox', { name: 'Name' }).fill('Sale')
  await page.getByLabel('Channel').selectOption('in_app')
  await page.getByRole('button', { name: 'Create a draft' }).click()
  await page.getByRole('textbox', { name: 'Title' }).fill('Hello {{first_name}} <b>')
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('The sale <img src=x onerror=alert(1)> is on.')
  await page.getByRole('textbox', { name: 'Opens' }).fill(`${origin}/#sale`)
  await page.getByLabel('Shown', { exact: true }).selectOption('banner')
  await page.getByTestId('preview-subject').getByText('Hello Ann <b>').waitFor()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Sale is saved.').waitFor()
  await w.axe('the editor of an in-app campaign')
  await w.shots('in-app-campaign')
  const sale = page.url().match(/cmp_[0-9a-f]+/)[0]
  await until('the campaign is saved', async () => assert.equal((await w.people('GET', `/campaigns/${sale}`)).in_app?.display, 'banner'))
  await w.people('POST', `/campaigns/${sale}/send`, { segment_ids: [segment._id] })

  // It comes at once, as a banner and in the inbox, as text.
  const banner = theirs.getByRole('status')
  await banner.getByText('Hello Ann <b>').waitFor()
  assert.equal(await theirs.locator('img, b').count(), 0)
  const listed = theirs.locator('#inbox').getByRole('listitem')
  await listed.waitFor()
  assert.match(await listed.innerText(), /<img src=x onerror=alert\(1\)>/)
  await counts(sale, { sent: 1, unique_opens: 1, unique_clicks: 0 })
  await until('it is no longer unseen', async () => assert.equal(await theirs.title(), '0 unseen'))
  await w.axe('a banner and an inbox', theirs)
  await shot('in-app-page-banner')
  await banner.getByRole('button').focus()
  await theirs.keyboard.press('Shift+Tab')
  assert.equal(await focused(), 'Open')
  await theirs.keyboard.press('Enter')
  await theirs.waitForURL(/#sale$/)
  await counts(sale, { unique_opens: 1, unique_clicks: 1, dismissed: 0 })
  await until('the banner is closed', async () => assert.equal(await banner.count(), 0))

  // Another one does not take the focus out of the inbox, unless it is shown on top of the page.
  const another = async (title, display) => {
    const made = await w.people('POST', '/campaigns', { name: title, channel: 2, type: 4, service: 'in_app', date: '1970-01-01T00:00:00Z', subject: title, body: 'For {{first_name}}.', in_app: { display } })
    await w.people('POST', `/campaigns/${made._id}/send`, { segment_ids: [segment._id] })
    return made._id
  }
  await listed.getByRole('button', { name: 'Close: Hello Ann <b>' }).focus()
  const quiet = await another('Quiet', 'inbox')
  await until('both are in the inbox', async () => assert.equal(await listed.count(), 2))
  await counts(quiet, { unique_opens: 1, dismissed: 0 })
  assert.equal(await focused(), 'Close: Hello Ann <b>')
  await theirs.keyboard.press('Enter')
  await counts(sale, { unique_opens: 1, unique_clicks: 1, dismissed: 1 })
  await until('the other one is left', async () => assert.deepEqual(await listed.getByRole('heading').allInnerTexts(), ['Quiet']))
  assert.equal(await focused(), 'Close: Quiet')

  await theirs.getByRole('button', { name: 'Buy' }).focus()
  const loud = await another('Loud', 'modal')
  const modal = theirs.getByRole('dialog', { name: 'Loud' })
  await modal.getByText('For Ann.').waitFor()
  await w.axe('a modal', theirs)
  await theirs.setViewportSize({ width: 390, height: 700 })
  await shot('in-app-page-modal-390')
  assert.equal(await focused(), 'Close: Loud')
  await theirs.keyboard.press('Escape')
  await counts(loud, { unique_opens: 1, unique_clicks: 0, dismissed: 1 })
  assert.equal(await modal.count(), 0)
  assert.equal(await focused(), 'Buy')
  assert.deepEqual(faults, [])
  assert.equal(loads, 1)

  await w.open(`/campaigns/${sale}`)
  for (const name of ['Sent', 'Seen', 'Clicked', 'Dismissed']) await page.getByTestId(`tile-${name}`).getByText('1', { exact: true }).waitFor()
  assert.equal(await page.getByTestId('tile-Expired').innerText(), '0')
  await w.axe('the results of an in-app campaign')
  await w.shots('in-app-results')

  await w.open(`/people/${profile_id}?tab=inbox`)
  const inbox = page.getByTestId('inbox-message')
  await inbox.filter({ hasText: 'Hello Ann <b>' }).getByText('dismissed').waitFor()
  await inbox.filter({ hasText: 'Quiet' }).getByText('seen').waitFor()
  await w.axe('the inbox of a person')
  await w.shots('in-app-inbox')
  await inbox.filter({ hasText: 'Quiet' }).getByRole('link', { name: 'Campaign' }).click()
  await page.waitForURL(new RegExp(quiet))
  await visit.close()
})
