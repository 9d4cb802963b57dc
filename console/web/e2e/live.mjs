// Screen 4: live events, with those refused, filters, and a pause that misses nothing.
import assert from 'node:assert/strict'
import { run, until } from './lib/run.mjs'

await run(async (w) => {
  const { page } = w
  const list = page.getByRole('region', { name: 'Events, the newest first' })
  const rows = list.getByRole('listitem')
  const buyers = await w.people('POST', '/segments', { name: 'Buyers', definition: { kind: 'activity', event: 'item_purchased' } })
  const post = (body) => fetch(`${w.creds.base_url}/events`, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-App-Id': w.creds.app_id, 'X-App-Secret': w.creds.app_secret }, body }).then((r) => r.json())
  await until('the segment is live', async () => (await w.people('GET', `/segments/${buyers._id}`)).status === 'live')

  await w.open('/live')
  await page.getByText('Watching', { exact: true }).waitFor()
  await page.getByText('Waiting for events').waitFor()
  await w.axe('live events before the first')

  // An event shows with the segment that it moved; opened, with every digit of its numbers.
  await post('{"event_type":"item_purchased","idempotency_key":"k1","user":{"email":"ada@example.com"},"properties":{"order":{"id":1234567890123456789},"value":79.9}}')
  const first = rows.filter({ hasText: 'item_purchased' })
  await first.getByText('entered Buyers').waitFor()
  await first.getByRole('button').first().click()
  await first.getByLabel('Properties').filter({ hasText: '1234567890123456789' }).waitFor()
  await first.getByText('Entered', { exact: false }).first().waitFor()
  // Reading a row pauses, so that it does not run away.
  await page.getByText('Paused, 0 new').waitFor()

  // What comes during a pause is held, all of it and in order.
  const sent = 300
  for (let from = 0; from < sent; from += 100) await w.send(Array.from({ length: 100 }, (_, i) => ({ event_type: 'page_viewed', user: { external_id: `v-${(from + i) % 20}` }, properties: { n: from + i } })))
  await until('they are held', async () => assert.match(await page.getByRole('status').first().innerText(), new RegExp(`^Paused, ${sent} new`)))
  assert.equal(await rows.filter({ hasText: 'page_viewed' }).count(), 0)
  await w.axe('a paused log with an open row')
  await w.shots('live-paused')
  await page.getByRole('button', { name: `Resume: ${sent} new` }).click()
  // The properties say which one a row is. All rows, from the newest to the oldest, have each number once.
  const seen = []
  await until('the newest is first', async () => assert.match(await rows.first().innerText(), new RegExp(`n: ${sent - 1}$`)))
  await until('every row was seen', async () => {
    for (const text of await rows.allInnerTexts()) {
      const n = Number(/n: (\d+)$/.exec(text)?.[1] ?? -1)
      if (n >= 0 && !seen.includes(n)) seen.push(n)
    }
    if (seen.length === sent) return
    await list.evaluate((e) => e.scrollBy(0, 500))
    return false
  })
  assert.deepEqual(seen, Array.from({ length: sent }, (_, i) => sent - 1 - i))

  // A refused one has the reason and the body.
  await post('{"event_type":"Item Purchased","user":{"email":"bob@example.com"},"properties":{"password":"hush"}}')
  await list.evaluate((e) => e.scrollTo(0, 0))
  const refused = rows.filter({ hasText: 'refused' }).first()
  await refused.getByText('must be a key in snake case').waitFor()
  await refused.getByRole('button').first().click()
  const body = refused.getByLabel('Body as it was sent')
  await body.filter({ hasText: '"event_type":"Item Purchased"' }).waitFor()
  assert.ok(!(await body.innerText()).includes('hush'))
  await w.axe('a refused event')
  await w.shots('live-refused')
  await page.getByRole('button', { name: 'Resume' }).click()

  // The outcome is in the address: a link to refused events shows those from before.
  await w.open('/live?outcome=refused')
  await rows.filter({ hasText: 'Item Purchased' }).waitFor()
  await until('only the refused one is listed', async () => assert.equal(await rows.count(), 1))

  // Repeats, types, people, segments.
  await page.getByLabel('Outcome').selectOption('Repeats')
  await page.getByText('Watching', { exact: true }).waitFor()
  await until('the repeat shows', async () => {
    await post('{"event_type":"item_purchased","idempotency_key":"k1","user":{"email":"ada@example.com"}}')
    await rows.filter({ hasText: 'repeat' }).first().waitFor({ timeout: 1500 })
  })
  await w.open(`/live?segment=${buyers._id}`)
  await page.getByText('Watching', { exact: true }).waitFor()
  await post('{"event_type":"page_viewed","user":{"email":"cleo@example.com"}}')
  await post('{"event_type":"item_purchased","user":{"email":"ada@example.com"}}')
  await post('{"event_type":"item_purchased","user":{"email":"cleo@example.com"}}')
  await rows.filter({ hasText: 'cleo@example.com' }).waitFor()
  assert.equal(await rows.count(), 1)
  await w.open('/live?who=cleo%40example.com&columns=%5B%22order.id%22%5D')
  await page.getByText('Watching', { exact: true }).waitFor()
  await post('{"event_type":"page_viewed","user":{"email":"ada@example.com"}}')
  await post('{"event_type":"order_paid","user":{"email":"cleo@example.com"},"properties":{"order":{"id":"A-7"}}}')
  await rows.filter({ hasText: 'order.id A-7' }).waitFor()
  assert.equal(await rows.count(), 1)
  await page.getByRole('combobox', { name: 'Person' }).fill('ada@example.com')
  await until('the address has the person', () => page.url().includes('ada'))
  await page.getByText('Watching', { exact: true }).waitFor()
  await page.getByText('Nothing that the filters let through has come yet').waitFor()
  await w.axe('filters that let nothing through')

  // A server that goes away: what came meanwhile is read, each event once and in order.
  w.forgive(/Failed to load resource|ERR_|503/)
  await w.open('/live?types=%5B%22numbered%22%5D')
  await page.getByText('Watching', { exact: true }).waitFor()
  const numbered = (n) => post(`{"event_type":"numbered","user":{"email":"ada@example.com"},"properties":{"n":${n},"big":1234567890123456789}}`)
  await numbered(1)
  await rows.filter({ hasText: 'n: 1' }).waitFor()
  // The browser has no network while events come.
  await w.context.setOffline(true)
  await w.stop()
  await page.getByText('The connection is lost; it comes back by itself').waitFor()
  await w.start()
  await numbered(2)
  await post('{"event_type":"page_viewed","user":{"email":"ada@example.com"}}')
  await numbered(3)
  await w.context.setOffline(false)
  await rows.filter({ hasText: 'The 2 events of that time stand above.' }).waitFor()
  await numbered(4)
  await rows.filter({ hasText: 'n: 4' }).waitFor()
  assert.deepEqual((await rows.allInnerTexts()).map((t) => /n: (\d+)/.exec(t)?.[1] ?? 'gap'), ['4', '3', '2', 'gap', '1'])
  const late = rows.filter({ hasText: 'n: 3' })
  await late.getByRole('button').first().click()
  await late.getByText('It came while the connection was lost.').waitFor()
  await late.getByLabel('Properties').filter({ hasText: '1234567890123456789' }).waitFor()
  await w.axe('events that were read after a break')
  await w.shots('live-late')

  // With filters that only the stream has, the page says where events may be missing, and leads to them.
  await w.open('/live?who=ada%40example.com')
  await page.getByText('Watching', { exact: true }).waitFor()
  await w.restart()
  await until('the stream is back', async () => {
    await post('{"event_type":"page_viewed","user":{"email":"ada@example.com"}}')
    await rows.filter({ hasText: 'page_viewed' }).first().waitFor({ timeout: 1500 })
  })
  await rows.filter({ hasText: 'The connection was lost from' }).getByRole('link', { name: 'Look in the person’s timeline' }).waitFor()

  // The session ends: the screen stays as it was behind the sign-in, and goes on after it.
  w.forgive(/401/)
  const nav = page.getByRole('navigation', { name: 'Screens', includeHidden: true }).getByRole('link', { includeHidden: true })
  const entries = await nav.count()
  await w.context.clearCookies()
  await page.getByRole('combobox', { name: 'Person' }).fill('')
  const over = page.getByRole('dialog', { name: 'Your session has expired. Sign in to continue.' })
  await over.waitFor()
  assert.equal(await page.getByText('You cannot see this').count(), 0)
  assert.equal(await page.getByRole('heading', { name: 'Live events', includeHidden: true }).count(), 1)
  assert.equal(await nav.count(), entries)
  await w.axe('a session that is over')
  await over.locator('input[type=password]').fill(w.creds.console_password)
  await over.getByRole('button', { name: 'Sign in' }).click()
  await over.waitFor({ state: 'hidden' })
  await page.getByText('Watching', { exact: true }).waitFor()

  // On a phone the status and the reason of a refused event are not cut off.
  await page.setViewportSize({ width: 390, height: 844 })
  await post('{"event_type":"Not A Type","user":{"email":"somebody.with.a.long.address@example.com"}}')
  const short = rows.filter({ hasText: 'refused' }).first()
  await short.getByText('must be a key in snake case').waitFor()
  for (const part of await short.locator('button *').all()) {
    const box = await part.boundingBox()
    if (box) assert.ok(box.x + box.width <= 390, `${await part.textContent()} ends at ${box.x + box.width}`)
  }
  await w.shots('live-phone')
  await page.setViewportSize({ width: 390, height: 844 })
  await until('the page fits a phone', () => page.evaluate(() => document.documentElement.scrollWidth <= 390))
  await page.evaluate(() => document.documentElement.setAttribute('data-mantine-color-scheme', 'dark'))
  await w.axe('dark live events on a phone')
})
