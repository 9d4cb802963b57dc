// Signup forms: one is made with a preview beside it, people use its page without scripts, and
// its figures and the person show what came of it.
import assert from 'node:assert/strict'
import { run, until } from './lib/run.mjs'

await run(async (w) => {
  const { page } = w
  const news = await w.people('POST', '/lists', { name: 'L1 news', description: '' })
  await w.open('/forms')
  await page.getByRole('button', { name: 'New form' }).first().click()
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Newsletter')
  await page.getByRole('textbox', { name: 'Title' }).fill('News from the shop')
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Once a month.')
  const preview = page.frameLocator('iframe[title="Preview of the page"]')
  await preview.getByRole('heading', { name: 'News from the shop' }).waitFor()
  await page.getByRole('button', { name: 'Add a field' }).click()
  const second = page.getByRole('group', { name: 'Field 2' })
  await second.getByLabel('Asks for').selectOption('first_name')
  await second.getByRole('textbox', { name: 'Label' }).fill('First name')
  await preview.getByText('First name').waitFor()
  await page.getByLabel('Lists that people join').first().click()
  await page.getByRole('option', { name: 'L1 news' }).click()
  await page.keyboard.press('Escape')
  await page.getByRole('switch', { name: 'Published' }).check({ force: true })
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('The form is saved.').waitFor()
  await w.axe('the editor of a form')
  await w.shots('form')

  const url = await page.getByRole('link', { name: /\/forms\/frm_/ }).getAttribute('href')
  assert.ok((await page.getByLabel('HTML to embed the form').innerText()).includes(`action="${url}"`))
  const plain = await w.browser.newContext({ javaScriptEnabled: false, viewport: { width: 390, height: 844 } })
  const theirs = await plain.newPage()
  await theirs.goto(url)
  await theirs.getByRole('heading', { name: 'News from the shop' }).waitFor()
  await theirs.getByLabel('E-mail').first().fill('ann@example.com')
  await theirs.getByLabel('First name').fill('Ann')
  await theirs.getByRole('checkbox').check()
  await theirs.waitForTimeout(1200) // faster is no person
  if (process.env.MUSTER_SHOTS) await theirs.screenshot({ path: `${process.env.MUSTER_SHOTS}/form-page-390.png` })
  await theirs.getByRole('button', { name: 'Sign up' }).click()
  await theirs.getByRole('status').getByText('Thank you').waitFor()
  await plain.close()
  await until('she is on the list', async () => assert.equal((await w.people('GET', `/lists/${news._id}/members`)).members.length, 1))

  await w.open('/forms')
  const row = page.getByRole('row', { name: /Newsletter/ })
  await row.waitFor()
  assert.match(await row.innerText(), /published\s+0\s+1\s+1/) // a headless browser counts as a program, not as a view
  await w.axe('the forms')
  await w.shots('forms')
})
