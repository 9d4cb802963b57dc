import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

/** The part of an element that the script uses: there is no DOM here. */
class El {
  children: El[] = []
  parentElement?: El
  shadowRoot: El | null = null
  adoptedStyleSheets: unknown[] = []
  dataset: Record<string, string> = {}
  attributes: Record<string, string> = {}
  activeElement = null
  textContent = ''
  onclick?: () => void
  constructor(readonly localName = '') {}
  append(...children: El[]) {
    for (const c of children) c.parentElement = this
    this.children.push(...children)
  }
  replaceChildren(...children: El[]) {
    this.children = []
    this.append(...children)
  }
  remove() {
    if (this.parentElement) this.parentElement.children = this.parentElement.children.filter((c) => c !== this)
  }
  attachShadow() {
    return (this.shadowRoot = new El())
  }
  setAttribute(name: string, value: string) {
    this.attributes[name] = value
  }
  addEventListener() {}
  showModal() {}
  close() {}
  querySelector(name: string): El | null {
    return this.all().find((e) => e.localName === name) ?? null
  }
  all(): El[] {
    return this.children.flatMap((c) => [c, ...c.all()])
  }
  titles() {
    return this.all().filter((e) => e.localName === 'h2').map((e) => e.textContent)
  }
}

interface Call {
  path: string
  token: string
  signal: AbortSignal
}
interface Script {
  start(options: { token: () => unknown; inbox: unknown; onUnseen?: (n: number) => void }): void
  stop(): void
}

const minute = 60_000
const now = Date.parse('2026-01-01T00:00:00Z')
const message = (id: string, more: object = {}) => ({ id, title: id, body: '', image: null, link: null, display: 'inbox', created_at: '2026-01-01T00:00:00Z', expires_at: '2026-03-31T00:00:00Z', seen_at: null, ...more })

let calls: Call[]
let answers: Record<string, () => Response | Promise<Response>> // by the beginning of the path
let events: ReadableStreamDefaultController<Uint8Array>
let inbox: El
let body: El
let script: Script
let show: (state: 'visible' | 'hidden') => Promise<void>

const asked = (path: string) => calls.filter((c) => c.path.startsWith(path))
const wait = (ms = 0) => vi.advanceTimersByTimeAsync(ms)
const holds = (...messages: object[]) => () => Response.json({ messages, unseen: messages.length, next: null })
const start = (token: () => unknown = () => 'a.b.c', onUnseen?: (n: number) => void) => script.start({ token, inbox, onUnseen })
const say = (text: string) => events.enqueue(new TextEncoder().encode(text))
const close = (id: string) => inbox.shadowRoot!.all().find((e) => e.attributes['aria-label'] === 'Close: ' + id)!.onclick!()

beforeEach(async () => {
  vi.useFakeTimers({ now })
  vi.resetModules()
  calls = []
  inbox = new El('div')
  body = new El('body')
  answers = {
    inbox: holds(),
    // As a browser's: aborting the call breaks the body.
    stream: () => {
      const { signal } = calls.at(-1)!
      return new Response(
        new ReadableStream({
          start(c) {
            events = c
            signal.addEventListener('abort', () => c.error(signal.reason))
          },
        }),
      )
    },
  }
  const page = Object.assign(new EventTarget(), {
    currentScript: { src: 'https://muster.example/in-app/muster-inapp.js' },
    documentElement: { lang: 'en' },
    visibilityState: 'visible',
    body,
    createElement: (name: string) => new El(name),
    querySelector: () => inbox,
  })
  Object.defineProperty(page, 'hidden', { get: () => page.visibilityState !== 'visible' })
  show = async (state) => {
    page.visibilityState = state
    page.dispatchEvent(new Event('visibilitychange'))
    await wait()
  }
  const window = {} as { MusterInApp: Script }
  vi.stubGlobal('document', page)
  vi.stubGlobal('window', window)
  vi.stubGlobal('CSSStyleSheet', class { replaceSync() {} })
  vi.stubGlobal('IntersectionObserver', class { observe() {} disconnect() {} })
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    const path = url.replace('https://muster.example/in-app/', '')
    calls.push({ path, token: new Headers(init.headers).get('Authorization')!.replace('Bearer ', ''), signal: init.signal! })
    init.signal!.throwIfAborted()
    const key = Object.keys(answers).filter((k) => path.startsWith(k)).sort((a, b) => b.length - a.length)[0]!
    return answers[key]!()
  })
  await import('./muster-inapp')
  script = window.MusterInApp
})

afterEach(() => {
  script.stop()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

describe('the stream', () => {
  it.each([
    ['refused', () => new Response(null, { status: 503 })],
    ['blocked', () => Promise.reject(new TypeError('blocked'))],
  ])('is %s: the inbox is read all the same, and not more than twice a minute', async (_, answer) => {
    answers.stream = answer
    answers.inbox = holds(message('first'))
    start()
    await wait()
    expect(inbox.shadowRoot?.titles()).toEqual(['first'])
    const before = asked('inbox').length
    answers.inbox = holds(message('first'), message('second'))
    await wait(29_000)
    expect(asked('inbox').length).toBe(before)
    await wait(3_000)
    expect(inbox.shadowRoot?.titles()).toEqual(['first', 'second'])
    await wait(10 * minute)
    expect(asked('inbox').length).toBeGreaterThan(before + 5)
    expect(asked('inbox').length).toBeLessThanOrEqual(before + 20)
  })

  it('is ended when the inbox cannot be read', async () => {
    start()
    await wait()
    const [old] = asked('stream')
    answers.inbox = () => new Response(null, { status: 500 })
    say('event: message\ndata: {}\n\n')
    await wait()
    expect(old!.signal.aborted).toBe(true)
    answers.inbox = holds()
    await wait(2_000)
    const now = asked('stream')
    expect(now.length).toBe(2)
    expect(now[1]!.signal.aborted).toBe(false)
  })

  it('is held while the page is visible, and the inbox is read when it is visible again', async () => {
    start()
    await wait()
    await show('hidden')
    expect(asked('stream').map((c) => c.signal.aborted)).toEqual([true])
    const before = calls.length
    await wait(10 * minute)
    expect(calls.length).toBe(before)
    answers.inbox = holds(message('meanwhile'))
    await show('visible')
    expect(inbox.shadowRoot?.titles()).toEqual(['meanwhile'])
    expect(asked('stream').map((c) => c.signal.aborted)).toEqual([true, false])
  })
})

describe('stop', () => {
  it('takes everything of the person off the page', async () => {
    const unseen: number[] = []
    answers.inbox = holds(message('private', { display: 'banner' }))
    start(undefined, (n) => unseen.push(n))
    await wait()
    expect(inbox.shadowRoot!.titles()).toEqual(['private'])
    expect(body.children.length).toBe(1)
    script.stop()
    expect(inbox.shadowRoot!.titles()).toEqual([])
    expect(body.children.length).toBe(0)
    expect(unseen.at(-1)).toBe(0)
    const before = calls.length
    await wait(100 * 24 * 60 * minute)
    await show('hidden')
    await show('visible')
    expect(calls.length).toBe(before)
    expect(inbox.shadowRoot!.titles()).toEqual([])
  })

  it('drops an answer that comes later', async () => {
    let answer: (r: Response) => void = () => {}
    answers.inbox = () => new Promise((r) => (answer = r))
    const unseen: number[] = []
    start(undefined, (n) => unseen.push(n))
    await wait()
    script.stop()
    answer(holds(message('private', { display: 'banner' }))())
    await wait()
    expect(inbox.shadowRoot?.titles() ?? []).toEqual([])
    expect(body.children.length).toBe(0)
    expect(unseen).toEqual([0])
  })

  it('comes before the messages of the next person', async () => {
    answers.inbox = holds(message('of the first'))
    start()
    await wait()
    answers.inbox = () => new Promise(() => {})
    start()
    await wait()
    expect(inbox.shadowRoot!.titles()).toEqual([])
    expect(calls.length).toBeGreaterThan(2)
  })
})

describe('the token', () => {
  it.each([
    ['is not a token', () => '<html>Sign in</html>', 1],
    ['cannot be sent', () => 'x.y.\n\u20ac', 1],
    ['is refused twice', () => 'old.old.old', 2],
  ])('that %s is asked for again', async (_, bad, times) => {
    let n = 0
    answers.inbox = () => (calls.at(-1)!.token === 'new.new.new' ? holds(message('hello'))() : new Response(null, { status: 401 }))
    const stream = answers.stream!
    answers.stream = () => (calls.at(-1)!.token === 'new.new.new' ? stream() : new Response(null, { status: 401 }))
    start(() => (n++ < times ? bad() : 'new.new.new\n'))
    await wait(3_000)
    expect(n).toBe(times + 1)
    expect(inbox.shadowRoot?.titles()).toEqual(['hello'])
    expect(calls.filter((c) => !/^\w+\.\w+\.\w+$/.test(c.token))).toEqual([])
  })

  it('is asked for again after a call that failed, since browsers hide some answers', async () => {
    let n = 0
    answers.inbox = () => (n > 1 ? holds(message('hello'))() : Promise.reject(new TypeError('Failed to fetch')))
    const stream = answers.stream!
    answers.stream = () => (n > 1 ? stream() : Promise.reject(new TypeError('Failed to fetch')))
    start(() => `a.b.${n++}`)
    await wait(3_000)
    expect(n).toBe(2)
    expect(inbox.shadowRoot?.titles()).toEqual(['hello'])
  })
})

describe('a deed', () => {
  it.each([
    ['503', () => new Response(null, { status: 503 })],
    ['403', () => new Response(null, { status: 403 })],
    ['nothing', () => Promise.reject(new TypeError('Failed to fetch'))],
  ])('answered %s is sent again with the next reading, and the message stays away', async (_, answer) => {
    answers.inbox = holds(message('one'))
    answers['inbox/'] = answer
    start()
    await wait()
    close('one')
    await wait()
    expect(asked('inbox/one/dismissed').length).toBe(1)
    answers['inbox/'] = () => Response.json({})
    for (let i = 0; i < 2; i++) {
      say('event: unseen\ndata: {}\n\n')
      await wait()
      expect(inbox.shadowRoot!.titles()).toEqual([])
    }
    expect(asked('inbox/one/dismissed').length).toBe(2)
  })

  it('that was not taken is sent again when the page is left', async () => {
    answers.inbox = holds(message('one'))
    answers['inbox/'] = () => new Response(null, { status: 503 })
    start()
    await wait()
    close('one')
    await wait()
    await show('hidden')
    expect(asked('inbox/one/dismissed').length).toBe(2)
  })

  it.each([200, 404])('answered %s is sent once', async (status) => {
    answers.inbox = holds(message('one'))
    answers['inbox/'] = () => new Response(null, { status })
    start()
    await wait()
    close('one')
    await wait()
    say('event: unseen\ndata: {}\n\n')
    await wait()
    expect(asked('inbox/one/dismissed').length).toBe(1)
  })
})

describe('a message that ends', () => {
  it('leaves the open page, also as a banner', async () => {
    const soon = { expires_at: new Date(now + 10 * minute).toISOString() }
    answers.inbox = holds(message('brief', { ...soon, display: 'banner' }), message('long'))
    start()
    await wait()
    expect(inbox.shadowRoot!.titles()).toEqual(['brief', 'long'])
    expect(body.children.length).toBe(1)
    await wait(10 * minute - 1)
    expect(inbox.shadowRoot!.titles()).toEqual(['brief', 'long'])
    await wait(1)
    expect(inbox.shadowRoot!.titles()).toEqual(['long'])
    expect(body.children.length).toBe(0)
  })

  it('in more days than a timer can run costs nothing until then', async () => {
    answers.inbox = holds(message('long'))
    start()
    await wait()
    const [list] = inbox.shadowRoot!.children
    await wait(minute)
    expect(inbox.shadowRoot!.children[0]).toBe(list)
  })
})
