// Imports: a CSV file with preview, mapping, progress and refused rows.
import assert from 'node:assert/strict'
import { run, until } from './lib/run.mjs'

await run(async (w) => {
  const { page } = w
  const csv = ['E-Mail,First name,Customer No,Points,Subscribed', ...Array.from({ length: 40 }, (_, i) => `person${i}@example.com,Änne ${i},12345678901234567${String(i).padStart(2, '0')},${i},${i === 7 ? 'no' : 'yes'}`), 'no address,Bad,1,2,', ''].join('\n')
  await w.open('/imports')
  await page.getByText('Nothing was imported yet').waitFor()
  await w.axe('no imports')
  await page.getByRole('button', { name: 'Upload a CSV file' }).first().click()
  await page.locator('input[type=file]').setInputFiles({ name: 'customers.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) })
  await w.axe('the form of an upload')
  await page.getByRole('button', { name: 'Upload', exact: true }).click()

  // What the columns become; one is changed.
  await page.getByRole('heading', { name: 'customers.csv', level: 1 }).waitFor()
  await page.getByRole('heading', { name: 'What the columns become' }).waitFor()
  assert.equal(await page.getByRole('combobox', { name: 'E-Mail becomes' }).inputValue(), 'email')
  assert.equal(await page.getByRole('combobox', { name: 'Subscribed becomes' }).inputValue(), 'subscribed')
  await page.getByRole('combobox', { name: 'Customer No becomes' }).fill('external_id')
  await page.getByRole('combobox', { name: 'Points becomes' }).fill('attributes.points')
  await page.keyboard.press('Escape')
  await page.getByText(/1 of 41 rows would be refused|Line 42/).first().waitFor()
  await w.axe('the preview of an import')
  await w.shots('import-preview')
  await page.setViewportSize({ width: 390, height: 844 })
  for (const field of [page.getByRole('combobox', { name: 'Customer No becomes' }), page.getByLabel('Type of Customer No')]) {
    const box = await field.boundingBox()
    assert.ok(box.x >= 0 && box.x + box.width <= 390, `on a phone a field ends at ${box.x + box.width}`)
  }
  await w.axe('the preview of an import on a phone')
  await page.setViewportSize({ width: 1440, height: 900 })
  await page.getByRole('button', { name: 'Start the import of 41 rows' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Start the import' }).click()

  await page.getByText('done', { exact: true }).waitFor()
  await page.getByTestId('import-Stored').filter({ hasText: /^40$/ }).waitFor()
  await page.getByTestId('import-Refused').filter({ hasText: /^1$/ }).waitFor()
  await page.getByText('Line 42:').waitFor()
  await w.axe('an import that is done')
  await w.shots('import-done')
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download them to mend' }).click()])
  let refused = ''
  for await (const b of await download.createReadStream()) refused += b
  assert.match(refused, /^line,reason,/)
  assert.match(refused, /no address/)

  // The people are there, with every digit of what they are called by.
  const p = await w.people('GET', '/profiles?email=person7%40example.com')
  assert.deepEqual([p.identities.external_id, p.first_name, p.attributes, p.consent.email.status], [['1234567890123456707'], 'Änne 7', { points: 7 }, 'unsubscribed'])

  await page.getByRole('link', { name: 'All imports' }).click()
  await page.getByRole('row').filter({ hasText: 'customers.csv' }).filter({ hasText: 'done' }).waitFor()
  await page.setViewportSize({ width: 390, height: 844 })
  await until('the page fits a phone', () => page.evaluate(() => document.documentElement.scrollWidth <= 390))
  await page.evaluate(() => document.documentElement.setAttribute('data-mantine-color-scheme', 'dark'))
  await w.axe('the dark imports on a phone')
})
