// How long people wait in the console, in Chromium, against a server that is filled
// already: from each keystroke in the builder until the exact counts of what was typed are
// painted, and from opening a page until its content is. `go run ./bench console --browser`
// runs it. It prints the times in milliseconds as one line of JSON.
import { run, until } from '../e2e/lib/run.mjs'

const pause = (ms) => new Promise((go) => setTimeout(go, ms))

/** In the page: the time of each typed character until a frame shows no older count. */
function watch() {
  const stale = () => document.querySelector('[data-testid="total"]')?.closest('[aria-live]')?.className !== ''
  window.waited = []
  window.waiting = false
  addEventListener('keydown', (e) => {
    if (e.key.length !== 1 || e.ctrlKey) return // types nothing
    const began = performance.now()
    window.waiting = true
    // React has rendered what was typed before the next frame; the one behind a frame
    // without an older count has painted it.
    const look = () => {
      if (stale()) return requestAnimationFrame(look)
      requestAnimationFrame(() => {
        window.waited.push(performance.now() - began)
        window.waiting = false
      })
    }
    requestAnimationFrame(look)
  }, true)
}

await run(async (w) => {
  const { page } = w
  await w.open('/segments')
  const opened = async (path, shown) => {
    await page.goto(`${w.url}/console${path}`)
    await shown().waitFor()
    return page.evaluate(() => performance.now())
  }
  const segments = await w.people('GET', '/segments?limit=1')
  const found = await w.people('GET', '/profiles/search?limit=1')
  const profile = found[0].profile_id
  const pages = { segment: [], people: [], person: [] }
  for (let i = 0; i < 5; i++) {
    pages.segment.push(await opened(`/segments/${segments[0]._id}`, () => page.getByRole('heading', { level: 1 })))
    pages.people.push(await opened('/people', () => page.getByRole('row').nth(2)))
    pages.person.push(await opened(`/people/${profile}`, () => page.getByRole('heading', { level: 1 })))
  }

  await page.goto(`${w.url}/console/segments/new`)
  const condition = (n) => page.getByRole('group', { name: new RegExp(`^Condition ${n}: `) })
  const add = async (kind) => {
    const item = page.getByRole('menuitem', { name: kind })
    // The first click may only close suggestions that are open.
    await until('the kinds of conditions', async () => {
      if (await item.isVisible()) return true
      await page.getByRole('button', { name: 'Add a condition' }).last().click()
      await item.waitFor({ timeout: 500 })
    })
    await item.click()
  }
  await condition(1).getByLabel('Event').fill('item_viewed')
  await until('the first count', async () => (await page.getByTestId('total').innerText()) !== '–')
  await page.evaluate(watch)

  /** Types into a field as people do, and waits for each count. */
  const type = async (field, text) => {
    await field.click()
    await field.press('Control+A')
    for (const key of text) {
      await page.keyboard.press(key)
      await page.waitForFunction(() => !window.waiting)
      await pause(60)
    }
    await page.keyboard.press('Escape') // suggestions
  }
  const first = condition(1)
  await first.getByLabel('Time that counts').selectOption('in the last')
  for (const days of ['30', '45', '7', '60', '14', '88']) await type(first.getByLabel('Number of days'), days)
  for (const n of ['2', '3', '1', '5', '2']) await type(first.getByLabel('Number to compare with'), n)
  await first.getByRole('button', { name: 'where …' }).click()
  await first.getByLabel('Property of the event').fill('product')
  await first.getByLabel('Comparison').selectOption('starts with')
  for (const product of ['sku-12', 'sku-4', 'sku-31', 'sku-27']) await type(first.getByLabel('Value to compare with'), product)

  await add('What they did')
  const second = condition(2)
  await second.getByLabel('Event').fill('purchased')
  await second.getByLabel('What is compared').selectOption('with the sum of')
  await second.getByLabel('Property that is compared').fill('value')
  for (const n of ['50', '120', '75', '300', '18']) await type(second.getByLabel('Number to compare with'), n)

  await add('Profile fields and attributes')
  const third = condition(3)
  await third.getByLabel('Field of the person').fill('attributes.plan')
  for (const plan of ['pro', 'plus', 'free']) await type(third.getByLabel('Value to compare with'), plan)
  await third.getByLabel('Field of the person').fill('geo.country')
  for (const country of ['DE', 'FR', 'NL']) await type(third.getByLabel('Value to compare with'), country)

  // The last number is what the API counts.
  const shown = Number((await page.getByTestId('total').innerText()).replaceAll(',', ''))
  const keystrokes = await page.evaluate(() => window.waited)
  console.log(JSON.stringify({ keystrokes, pages, shown }))
})
