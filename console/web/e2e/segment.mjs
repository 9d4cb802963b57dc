// Screen 2: the page of a segment.
import assert from 'node:assert/strict'
import { run, until } from './lib/run.mjs'
import { shop } from './lib/shop.mjs'

await run(async (w) => {
  const { page } = w
  const { events, people } = shop()
  await w.send(events)
  const bought = (n) => ({ kind: 'activity', event: 'item_purchased', count: { op: '>=', value: n } })
  const made = await w.people('POST', '/segments', { name: 'Buyers', definition: bought(2) })
  const german = await w.people('POST', '/segments', { name: 'Germans', definition: { kind: 'attribute', field: 'geo.country', op: '=', value: 'DE' } })
  await w.people('POST', '/segments', { name: 'German buyers', definition: { match: 'all', conditions: [{ kind: 'segment', segment_id: made._id }, { kind: 'segment', segment_id: german._id }] } })
  const twice = people.filter((p) => p.purchases.length >= 2)
  const thrice = people.filter((p) => p.purchases.length >= 3)
  await until('the segment is live', async () => (await w.people('GET', `/segments/${made._id}`)).status === 'live')

  // The list leads to the page: count, chart, what happened so far, where it is used.
  await w.open('/segments')
  await page.getByRole('link', { name: 'Buyers', exact: true }).click()
  await page.getByRole('heading', { name: 'Buyers', level: 1 }).waitFor()
  const countIs = (n) => until(`the count is ${n}`, async () => assert.equal(await page.getByTestId('count').innerText(), String(n)))
  await countIs(twice.length)
  await page.getByText('did item_purchased at least 2 times').waitFor()
  await page.getByTestId('moves').filter({ hasText: `${twice.length} entered and 0 left` }).waitFor()
  await page.getByRole('img', { name: `Members by hour: ${twice.length} at the end` }).locator('canvas').waitFor()
  const moves = page.getByTestId('move')
  await moves.filter({ hasText: 'when the segment was created' }).first().waitFor()
  await page.getByRole('region', { name: 'Used in' }).getByRole('link', { name: 'German buyers' }).waitFor()
  await page.getByTestId('stream').filter({ hasText: 'live' }).waitFor()
  await w.axe('a segment')

  // Somebody enters: the feed, the count and the chart know it, with the cause.
  const outside = people.find((p) => p.purchases.length === 1)
  await w.send([{ event_type: 'item_purchased', user: { email: outside.email }, properties: { value: 5 } }])
  await moves.first().filter({ hasText: `${outside.first_name} ${outside.last_name} entered` }).filter({ hasText: 'by an event' }).waitFor()
  await countIs(twice.length + 1)
  await page.getByTestId('moves').filter({ hasText: `${twice.length + 1} entered and 0 left` }).waitFor()
  await w.shots('segment')

  // A pause holds the feed, and nothing is lost in it.
  await page.getByRole('button', { name: 'Pause' }).click()
  const late = people.filter((p) => p.purchases.length === 1)[1]
  await w.send([{ event_type: 'item_purchased', user: { email: late.email }, properties: { value: 5 } }])
  await countIs(twice.length + 2)
  assert.equal(await moves.filter({ hasText: `${late.first_name} ${late.last_name}` }).count(), 0)
  await page.getByRole('button', { name: 'Resume' }).click()
  await moves.first().filter({ hasText: `${late.first_name} ${late.last_name} entered` }).waitFor()

  // A server that goes away and comes back: the feed goes on behind what it had.
  w.forgive(/Failed to load resource|ERR_|503|502|500/)
  await w.restart()
  const third = people.filter((p) => p.purchases.length === 1)[2]
  await w.send([{ event_type: 'item_purchased', user: { email: third.email }, properties: { value: 5 } }])
  await moves.first().filter({ hasText: `${third.first_name} ${third.last_name} entered` }).waitFor()
  assert.equal(await moves.filter({ hasText: `${late.first_name} ${late.last_name} entered` }).count(), 1)
  const now = (await w.people('GET', `/segments/${made._id}`)).count

  // Members as people, with search; one of them says why.
  await page.getByRole('tab', { name: 'Members' }).click()
  await page.getByTestId('found').filter({ hasText: `${now} people` }).waitFor()
  await page.getByRole('search', { name: 'Members' }).getByLabel('Search').fill(outside.email)
  await page.getByTestId('found').filter({ hasText: '1 person' }).waitFor()
  await w.axe('members of a segment')
  await w.shots('segment-members')
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Export members' }).click()])
  assert.equal(file.suggestedFilename(), 'Buyers.ndjson')
  await page.getByRole('link', { name: `Why is ${outside.first_name} in it?` }).click()
  const reasons = page.getByRole('region', { name: 'Reasons' })
  await reasons.getByText('2 matching events').waitFor()
  await page.goBack()

  // Versions: the difference in words, in lines and in people.
  await w.people('PUT', `/segments/${made._id}`, { name: 'Buyers', definition: bought(3) })
  await until('the new version is live', async () => (await w.people('GET', `/segments/${made._id}`)).status === 'live')
  await page.getByRole('tab', { name: 'Versions' }).click()
  await page.reload()
  const versions = page.getByTestId('version')
  await versions.nth(1).waitFor()
  assert.match(await versions.first().innerText(), /at least 3 times/)
  await versions.first().getByRole('button', { name: 'Difference' }).click()
  await versions.first().locator('[data-kind=added]').filter({ hasText: '"value": 3' }).waitFor()
  await versions.first().locator('[data-kind=removed]').filter({ hasText: '"value": 2' }).waitFor()
  await versions.nth(1).getByRole('button', { name: 'Difference' }).click()
  await page.getByTestId('version-members').filter({ hasText: `It would have ${now} members now: ${now - thrice.length} would enter, 0 would leave.` }).waitFor()
  await w.axe('versions of a segment')
  await w.shots('segment-versions')

  // Beside another segment, and at a past instant.
  await page.getByRole('tab', { name: 'Compare' }).click()
  await page.getByLabel('Other segment').selectOption('Germans')
  const germans = people.filter((p) => p.country === 'DE')
  const both = thrice.filter((p) => p.country === 'DE').length
  await page.getByTestId('overlap').filter({ hasText: `${both} in both` }).filter({ hasText: `${thrice.length - both} only in Buyers` }).filter({ hasText: `${germans.length - both} only in Germans` }).waitFor()
  await page.getByRole('textbox', { name: 'Instant' }).fill('2020-01-01T00:00')
  await page.getByTestId('past').filter({ hasText: `0 members on 1 Jan 2020` }).waitFor()
  const instant = new Date(Date.now() + 60_000)
  await page.goto(`${page.url().replace(/&at=[^&]*/, '')}&at=${encodeURIComponent(JSON.stringify(instant.toISOString()))}`)
  await page.getByTestId('past').filter({ hasText: `${thrice.length} members on` }).waitFor()
  await w.axe('a segment compared')
  await w.shots('segment-compare')

  // The person's page shows the segment that was asked about, wherever it stands in a long list.
  for (let i = 0; i < 40; i++) await w.people('POST', '/segments', { name: `Another ${i}`, definition: { kind: 'attribute', field: 'email', op: 'exists' } })
  const newest = await w.people('POST', '/segments', { name: 'The last one', definition: bought(2) })
  await w.open(`/segments/${newest._id}?tab=members&q=${encodeURIComponent(outside.email)}`)
  await page.getByRole('link', { name: `Why is ${outside.first_name} in it?` }).click()
  await reasons.getByText('2 matching events').waitFor()
  assert.match(await page.locator('li[data-asked]').innerText(), /^The last one/)
  await until('the reasons are in view', async () => {
    const box = await reasons.boundingBox()
    assert.ok(box.y >= 48 && box.y + box.height <= 900, `they are from ${box.y} to ${box.y + box.height}`)
  })
  await w.axe('the reasons')
  await w.shots('segment-why')
  await w.open(`/segments/${made._id}`)

  // On a phone nothing is wider than the screen, also in the dark.
  await page.setViewportSize({ width: 390, height: 844 })
  for (const tab of ['Overview', 'Members', 'Versions', 'Compare']) {
    await page.getByRole('tab', { name: tab }).click()
    await until(`${tab} fits a phone`, () => page.evaluate(() => document.documentElement.scrollWidth <= 390))
  }
  await page.getByRole('tab', { name: 'Overview' }).click()
  await moves.first().waitFor()
  await page.evaluate(() => document.documentElement.setAttribute('data-mantine-color-scheme', 'dark'))
  await w.axe('a dark segment on a phone')
})
