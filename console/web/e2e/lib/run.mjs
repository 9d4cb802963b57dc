// Runs the story of a screen in Chromium against the server that e2e_test.go started for
// it. A story says what a person does and sees; `node:assert` and `until` are its checks.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { chromium } from 'playwright-core'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const patience = 30_000 // milliseconds that anything may take at most

/** Waits until check is true, or does not throw; the last reason is in the error. A page that
 *  hangs answers no check, and Playwright does not give up: it fails here, by its name. */
export async function until(what, check, ms = patience) {
  const end = Date.now() + ms
  for (let reason = ''; ; ) {
    let late
    const unanswered = new Promise((_, fail) => (late = setTimeout(() => fail(new Error('the page did not answer')), Math.max(end - Date.now(), 0) + 2000)))
    try {
      if ((await Promise.race([check(), unanswered])) !== false) return
      reason = 'it is not so'
    } catch (e) {
      reason = e.message
    } finally {
      clearTimeout(late)
    }
    if (Date.now() > end) assert.fail(`${what}: ${reason}`)
    await new Promise((go) => setTimeout(go, 40))
  }
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()

/** Waits until a search that somebody types offers one person alone: before, the arrow keys choose among others. */
export function offered(page, email) {
  return until(`${email} alone is offered`, async () => assert.deepEqual((await page.locator('[data-combobox-option]:visible').allInnerTexts()).map((t) => t.includes(email)), [true]))
}

/** Asks e2e_test.go for something that only it can do. */
async function order(name) {
  process.stdout.write(`@${name}\n`)
  const { value } = await lines.next()
  assert.equal(value, 'done', `${name}: ${value}`)
}

/** Runs a story; it is given a world:
 *  - page, context, browser: Playwright's; open(path): goes to a screen, signed in
 *  - url, creds, link: the server, its first credentials, the token of the sign-in link (unused)
 *  - people(method, path, body): a call of the console API beside the page; its data
 *  - send(events): sends events as a customer's program does
 *  - axe(what, page): no serious finding of axe-core on what is shown, of the console or of another page
 *  - shots(name): pictures at 1440 and 390 pixels, light and dark, where MUSTER_SHOTS is a folder
 *  - restart(), stop(), start(): the server
 *  - forgive(pattern): errors of the browser's console that are expected
 */
export async function run(story) {
  const url = process.env.MUSTER_URL
  const creds = JSON.parse(readFileSync(process.env.MUSTER_CREDENTIALS, 'utf8'))
  const browser = await chromium.launch({ executablePath: process.env.MUSTER_CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
  const errors = []
  const forgiven = []
  const watch = (page) => {
    page.setDefaultTimeout(patience)
    page.on('pageerror', (e) => errors.push(`error in the page: ${e.stack ?? e.message}`))
    // Whether somebody is signed in is found out by asking.
    page.on('console', (m) => m.type() === 'error' && !(m.text().includes('401') && m.location().url.endsWith('/session')) && errors.push(`${m.text()} (${m.location().url})`))
    page.on('request', (r) => {
      if (!r.url().startsWith(url) && !/^(data|blob|about):/.test(r.url())) errors.push(`a request to another host: ${r.url()}`)
    })
  }
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: 'light', locale: 'en-GB', timezoneId: 'Europe/Berlin', reducedMotion: 'reduce', permissions: ['clipboard-read', 'clipboard-write'] })
  context.on('page', watch)
  const page = await context.newPage()
  let token = ''
  // While a change of colours runs, colours that nobody sees would be measured.
  const settled = (on = page) =>
    on.evaluate(async () => {
      const frame = () => new Promise((go) => requestAnimationFrame(go))
      const running = () => document.getAnimations().some((a) => a.playState === 'running' && a.effect?.getComputedTiming().endTime !== Infinity)
      do {
        await frame()
        await frame()
      } while (running())
    })
  const world = {
    browser, context, page, url, creds, link: process.env.MUSTER_LINK,
    async people(method, path, body) {
      if (!token) {
        const res = await fetch(`${url}/console/api/v1/session`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ email: creds.console_email, password: creds.console_password }) })
        token = (await res.json()).data.token
      }
      const res = await fetch(`${url}/console/api/v1${path}`, { method, headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` }, body: body === undefined ? undefined : JSON.stringify(body) })
      const answer = await res.json()
      assert.ok(res.ok, `${method} ${path}: ${res.status} ${answer.message}`)
      return answer.data
    },
    async send(events) {
      const res = await fetch(`${creds.base_url}/events/batch`, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-App-Id': creds.app_id, 'X-App-Secret': creds.app_secret }, body: JSON.stringify({ events }) })
      const answer = await res.json()
      assert.equal(answer.accepted, events.length, JSON.stringify(answer).slice(0, 400))
      return answer
    },
    async open(path) {
      await page.goto(`${url}/console${path}`)
      const form = page.getByRole('textbox', { name: 'E-mail' })
      await until('the sign-in or the screen', async () => (await form.count()) + (await page.getByRole('navigation').count()) > 0)
      if (await form.count()) {
        await form.fill(creds.console_email)
        await page.locator('input[type=password]').fill(creds.console_password)
        await page.getByRole('button', { name: 'Sign in' }).click()
        await page.getByRole('navigation').first().waitFor({ state: 'attached' })
      }
    },
    async axe(what, on = page) {
      await on.evaluate(`window.axe || (() => { ${axeSource} })()`)
      await settled(on)
      // It reads the page piece by piece: where the page changed meanwhile, it measured what
      // was never shown at one time. What counts is found twice, on a page that stands still.
      const found = await on.evaluate(async () => {
        const findings = () => window.axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.filter((v) => v.impact === 'serious' || v.impact === 'critical').map((v) => `${v.id}: ${v.help}\n${v.nodes.slice(0, 5).map((n) => `    ${n.html.slice(0, 200)}\n      ${n.failureSummary.split('\n').slice(1, 3).join(' ')}`).join('\n')}`))
        for (let left = 10, before = ''; ; left--) {
          let changed = false
          const seen = new MutationObserver(() => (changed = true))
          seen.observe(document.documentElement, { attributes: true, childList: true, characterData: true, subtree: true })
          const found = await findings()
          seen.disconnect()
          if (found.length === 0 || (!changed && found.join() === before)) return found
          if (left === 1) return [changed ? 'The page changed whenever it was looked at:' : 'What is found changes:', ...found]
          before = found.join()
          await new Promise((go) => setTimeout(go, 300))
        }
      })
      assert.deepEqual(found, [], `axe-core on ${what}:\n${found.join('\n')}`)
    },
    async shots(name) {
      const folder = process.env.MUSTER_SHOTS
      if (!folder) return
      mkdirSync(folder, { recursive: true })
      for (const [width, height] of [[1440, 900], [390, 844]]) {
        await page.setViewportSize({ width, height })
        for (const colours of ['light', 'dark']) {
          await page.evaluate((c) => document.documentElement.setAttribute('data-mantine-color-scheme', c), colours)
          await settled()
          await page.screenshot({ path: join(folder, `${name}-${width}-${colours}.png`), fullPage: width < 500 })
        }
      }
      await page.setViewportSize({ width: 1440, height: 900 })
      await page.evaluate(() => document.documentElement.setAttribute('data-mantine-color-scheme', 'light'))
    },
    restart: () => order('restart'),
    stop: () => order('stop'),
    start: () => order('start'),
    forgive: (pattern) => forgiven.push(pattern),
  }
  try {
    await story(world)
    assert.deepEqual(errors.filter((e) => !forgiven.some((p) => p.test(e))), [], 'errors in the browser')
  } catch (e) {
    console.error(e.stack ?? e)
    for (const x of errors.slice(0, 10)) console.error('browser:', x)
    const shot = join(process.env.MUSTER_FAILED ?? '.', `failed-${basename(process.argv[1], '.mjs')}.png`)
    await page.screenshot({ path: shot }).then(() => console.error(`the page as it was: ${shot}, at ${page.url()}`), () => {})
    process.exitCode = 1
  }
  await browser.close()
  process.stdin.destroy()
}
